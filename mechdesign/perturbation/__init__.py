"""Cell keys and perturbation tables: read, judged, designed with a proof, and written.

Statistical offices protect counts by them: the key of a cell is the sum of its records' keys, and a
table says what is added to which count at which key.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
