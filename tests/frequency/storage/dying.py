"""A protocol that ends its process: processes of a pool import it from here."""

import os
import signal

from frequency import HRR


class Dying(HRR):
    """An oracle whose processes are killed while they count."""

    @property
    def parameters(self):
        return HRR(64, 1.0).parameters

    def add_counts(self, reports, counts=None):
        os.kill(os.getpid(), signal.SIGKILL)
