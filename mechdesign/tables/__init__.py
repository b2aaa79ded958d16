"""Tables of counts: released with a statement of privacy and totals; and what suppression hides."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
