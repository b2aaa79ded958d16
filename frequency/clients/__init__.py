"""Clients for devices: the description of a protocol's client half, and what runs it.

`device` needs the standard library alone, and is one file to copy; beside the packages,
``clients/javascript`` is the same for browsers. Both run what ``protocol.client()`` gives.

>>> from frequency import GRR
>>> client = load_client(GRR(domain=4, epsilon=1.0).client())
>>> len(client.report(2))  # eight bytes that name the protocol, and an item
9
"""

from frequency.clients.device import (
    Client,
    ClientError,
    MemoisedClient,
    RefusedValue,
    load_client,
    load_memoised,
)

__all__ = [
    "Client",
    "ClientError",
    "MemoisedClient",
    "RefusedValue",
    "load_client",
    "load_memoised",
]
