"""ldp-toolbox: objects for one user a call, compiled by numba."""

from importlib import import_module

from peers.adapters import choice


class Protocol:
    def __init__(self, inner):
        self.inner = inner

    def privatize(self, values):
        obfuscate = self.inner.obfuscate
        return [obfuscate(value) for value in values]

    def estimate(self, reports):
        return self.inner.estimate(reports)


def oracle(kind, domain, epsilon):
    def protocol(module, name, **options):
        return Protocol(
            getattr(import_module(f"ldp_toolbox.protocols.frequency.{module}"), name)(
                domain, epsilon, **options
            )
        )

    made = {
        "GRR": lambda: protocol("grr", "GeneralizedRandomizedResponse"),
        "OUE": lambda: protocol("ue", "UnaryEncoding"),
        "SUE": lambda: protocol("ue", "UnaryEncoding", optimal=False),
        "OLH": lambda: protocol("lh", "LocalHashing"),
        "Subset selection": lambda: protocol("ss", "SubsetSelection"),
    }
    return choice(made, kind)()


def _error():
    return (
        "a formula, for rare items: ±"
        f" {1.96 * oracle('GRR', 2, 1.0).inner.get_mse(1000) ** 0.5:.3f}"
    )


def _refused():
    counts = oracle("GRR", 64, 1.0).estimate([-1] * 1000)
    return "counted as the last item" if max(counts) == counts[-1] else "ignored"


def _randomness():
    import numba
    import numpy as np

    seed = numba.njit(lambda number: np.random.seed(number))  # noqa: NPY002  theirs

    def reports():
        seed(1)
        return oracle("GRR", 64, 1.0).privatize([1] * 50)

    return (
        "Mersenne twisters: someone who knows the seed knows the reports"
        if reports() == reports()
        else "not seeded"
    )


PROBES = {
    "error of an answer": _error,
    "a report that cannot be": _refused,
    "randomness": _randomness,
}

FEATURES = {
    "import": lambda: import_module("ldp_toolbox"),
    "GRR": lambda: oracle("GRR", 64, 1.0).privatize([1, 2, 3]),
    "unary encodings": lambda: oracle("OUE", 64, 1.0).privatize([1, 2, 3]),
    "local hashing": lambda: oracle("OLH", 64, 1.0).privatize([1, 2, 3]),
    "subset selection": lambda: oracle("Subset selection", 64, 1.0).privatize([1, 2, 3]),
}
