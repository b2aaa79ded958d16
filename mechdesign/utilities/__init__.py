"""The utilities of local mechanisms that `mechdesign.local.extremal` maximises.

Each is a sum over outputs of a sublinear function of the row, see
`mechdesign.utilities.sublinear_utility`. A new utility is a subclass of its `Utility`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
