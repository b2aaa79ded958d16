"""multi-freq-ldpy: functions for one user a call, compiled by numba."""

from importlib import import_module
from math import e

from peers.adapters import choice


class Functions:
    def __init__(self, client, server, more=()):
        self.client, self.server, self.more = client, server, more

    def privatize(self, values):
        client, more = self.client, self.more
        return [client(value, *more) for value in values]

    def estimate(self, reports):
        return self.server(reports)


def oracle(kind, domain, epsilon):
    def functions(name, *options, domain_too=True):
        module = import_module(f"multi_freq_ldpy.pure_frequency_oracles.{name}")
        client, server = getattr(module, f"{name}_Client"), getattr(module, f"{name}_Aggregator_MI")
        known = (domain, epsilon) if domain_too else (epsilon,)
        return Functions(
            client, lambda reports: server(reports, *known, *options), (domain, epsilon, *options)
        )

    made = {
        "GRR": lambda: functions("GRR"),
        "OUE": lambda: functions("UE", True, domain_too=False),
        "SUE": lambda: functions("UE", False, domain_too=False),
        "OLH": lambda: functions("LH", True),
        "Subset selection": lambda: functions("SS"),
    }
    return choice(made, kind)()


def _error():
    p = e / (e + 1)
    variance = import_module("multi_freq_ldpy.pure_frequency_oracles.Variance_PURE").VAR_Pure(
        p, 1 - p, n=1000
    )
    return f"a formula of p, q and n: ± {1.96 * variance**0.5:.3f}"


def _refused():
    counts = oracle("GRR", 64, 1.0).estimate([-1] * 1000)
    return "counted as the last item" if max(counts) == counts[-1] else "ignored"


def _randomness():
    import numba
    import numpy as np

    seed = numba.njit(lambda number: np.random.seed(number))  # noqa: NPY002  theirs

    def reports():
        seed(1)
        return oracle("GRR", 64, 1.0).privatize([1] * 50)

    return (
        "Mersenne twisters: someone who knows the seed knows the reports"
        if reports() == reports()
        else "not seeded"
    )


PROBES = {
    "error of an answer": _error,
    "a report that cannot be": _refused,
    "randomness": _randomness,
}

FEATURES = {
    "import": lambda: import_module("multi_freq_ldpy"),
    "GRR": lambda: oracle("GRR", 64, 1.0).privatize([1, 2, 3]),
    "unary encodings": lambda: oracle("OUE", 64, 1.0).privatize([1, 2, 3]),
    "local hashing": lambda: oracle("OLH", 64, 1.0).privatize([1, 2, 3]),
    "subset selection": lambda: oracle("Subset selection", 64, 1.0).privatize([1, 2, 3]),
}
