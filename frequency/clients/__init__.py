"""Clients for devices: the description of a protocol's client half, and what runs it.

`device` needs the standard library alone, and is one file to copy; beside the packages,
``clients/javascript`` is the same for browsers. Both run what ``protocol.client()`` gives.

>>> from frequency.clients import load_client
>>> from frequency import GRR
>>> client = load_client(GRR(domain=4, epsilon=1.0).client())
>>> len(client.report(2))  # eight bytes that name the protocol, and an item
9
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
