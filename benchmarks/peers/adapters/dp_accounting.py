"""dp-accounting: what compositions of mechanisms cost; it has no mechanism of its own."""


def ten_releases():
    """The epsilon of ten Laplace mechanisms of epsilon 1/10 each, at delta 1e-6."""
    from dp_accounting import LaplaceDpEvent
    from dp_accounting.pld import PLDAccountant

    return PLDAccountant().compose(LaplaceDpEvent(10.0), 10).get_epsilon(1e-6)


def _privacy():
    return f"ten of epsilon 0.1 each, delta 1e-6: {ten_releases():.6f}, rounded up by design"


PROBES = {"privacy of what runs": _privacy}

FEATURES = {
    "import": lambda: __import__("dp_accounting"),
    "composition": ten_releases,
}
