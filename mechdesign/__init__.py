"""Design, certify and deploy differentially private count mechanisms.

`mechdesign.local` designs for local privacy, `mechdesign.symbolic` for every alpha at once.
"""

import lazy_loader

_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":  # looked up when it is asked for
        from importlib.metadata import version

        return version("mechdesign")
    return _attribute(name)
