"""tmlt.core (Tumult): measurements that say their privacy; without Spark, one number a call."""

from fractions import Fraction

from peers.adapters import choice


def geometric(epsilon):
    from tmlt.core.measurements.noise_mechanisms import AddGeometricNoise
    from tmlt.core.utils.exact_number import ExactNumber

    scale = 1 / Fraction(epsilon).limit_denominator(10**6)
    return AddGeometricNoise(ExactNumber(scale.numerator) / ExactNumber(scale.denominator))


def noise(kind, epsilon, n):
    measurement = choice({"unbounded, secure": geometric}, kind)(epsilon)
    return lambda true, draws: [measurement(true) for _ in range(draws)]


def _privacy():
    return f"privacy_function(1) = {geometric(1.0).privacy_function(1)}, exact"


PROBES = {"privacy of what runs": _privacy}

FEATURES = {
    "import": lambda: __import__("tmlt.core"),
    "counts": lambda: noise("unbounded, secure", 1.0, 8)(3, 10),
}
