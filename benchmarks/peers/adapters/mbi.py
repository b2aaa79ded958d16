"""mbi (private-pgm): models of populations fitted to marginals that somebody else made noisy."""


def fitted():
    """A model of three attributes, from the counts of two pairs of them."""
    import numpy as np
    from mbi import Domain, LinearMeasurement
    from mbi.estimation import MirrorDescent

    domain = Domain(["a", "b", "c"], [2, 3, 4])
    pairs = (("a", "b"), ("b", "c"))
    measured = [LinearMeasurement(np.ones(domain.size(pair)), pair, 1.0) for pair in pairs]
    return MirrorDescent().estimate(domain, measured, iters=10)


FEATURES = {"import": lambda: __import__("mbi"), "models of marginals": fitted}
