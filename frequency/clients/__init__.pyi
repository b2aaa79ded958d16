from .device import Client, ClientError, MemoisedClient, RefusedValue, load_client, load_memoised

__all__ = [
    "Client",
    "ClientError",
    "MemoisedClient",
    "RefusedValue",
    "load_client",
    "load_memoised",
]
