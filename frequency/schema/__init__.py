"""Schemas: the attributes of users, with labels, units and bins, and protocols that ask for them.

>>> import numpy as np
>>> from frequency.schema import Numeric, Schema
>>> schema = Schema([Numeric("age", low=0, high=120, whole=True, unit="years", missing="item")])
>>> schema.encode({"age": [44, None, 7]}).columns
(array([ 44, 121,   7]),)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
