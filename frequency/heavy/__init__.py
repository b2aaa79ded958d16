"""Heavy hitters under local privacy: the frequent items of a universe too large to list.

>>> import numpy as np
>>> from frequency.heavy import PrefixExtension
>>> protocol = PrefixExtension(bits=64, epsilon=4.0, text=True)
>>> words = ["ja"] * 9_000 + ["nein"] * 5_000 + ["jein", "doch"] * 20
>>> found = protocol.find(protocol.privatize(words, np.random.default_rng(1)))
>>> found.items.tolist()
['ja', 'nein']
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
