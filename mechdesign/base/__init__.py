"""Internals that the three packages share: text, numbers, files, randomness, linear algebra."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
