"""The privacy loss of releases and collections: alone, shuffled, composed, and in a ledger."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
