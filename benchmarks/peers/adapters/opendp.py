"""OpenDP: measurements that say their privacy; randomised response for one user a call, noise for
vectors of counts.
"""

from math import exp

from peers.adapters import Absent, choice


def prelude():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


class Clients:
    """The library has no server for them."""

    def __init__(self, measurement, encode=lambda value: value):
        self.measurement, self.encode = measurement, encode

    def privatize(self, values):
        measurement, encode = self.measurement, self.encode
        return [measurement(encode(value)) for value in values]

    def estimate(self, reports):
        raise Absent("server")


def oracle(kind, domain, epsilon):
    dp = prelude()

    def grr():
        return Clients(
            dp.m.make_randomized_response(
                list(range(domain)), exp(epsilon) / (exp(epsilon) + domain - 1)
            )
        )

    def sue():
        bits = [
            (1 << (8 * (domain // 8) - 1 - item)).to_bytes(domain // 8, "big")
            for item in range(domain)
        ]
        space = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
        return Clients(
            dp.m.make_randomized_response_bitvec(*space, f=2 / (exp(epsilon / 2) + 1)),
            bits.__getitem__,
        )

    return choice({"GRR": grr, "SUE": sue}, kind)()


def counts_of(dp):
    return dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)


def noise(kind, epsilon, n):
    dp = prelude()
    bounds = choice({"unbounded, secure": None, "truncated, secure": (0, n)}, kind)
    measurement = dp.m.make_geometric(*counts_of(dp), scale=1 / epsilon, bounds=bounds)
    return lambda true, draws: measurement([true] * draws)


def release_of(dp, kind, domain, epsilon):
    """A function of true counts -> counts of all cells."""
    space = counts_of(dp)
    if kind == "cells":
        return dp.m.make_laplace(*space, scale=1 / epsilon)
    branching = choice(
        {"tree, b = 4": 4, "tree, b = 16": 16, "tree, best": dp.t.choose_branching_factor(domain)},
        kind,
    )
    tree = dp.t.make_b_ary_tree(*space, leaf_count=domain, branching_factor=branching)
    measurement = tree >> dp.m.then_laplace(scale=tree.map(1) / epsilon)
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branching)
    return lambda counts: consistent(measurement(counts))


def ranges(kind, domain, epsilon):
    release = release_of(prelude(), kind, domain, epsilon)
    return lambda counts: release(counts)[:domain]


def quantiles(kind, domain, epsilon, probabilities):
    dp = prelude()
    if kind == "exponential mechanism":
        values, metric = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        each = []
        for q in probabilities:

            def make(scale, q=q):
                return dp.m.make_private_quantile(
                    values, metric, dp.max_divergence(), list(range(domain)), q, scale
                )

            each.append(
                dp.binary_search_chain(
                    make, d_in=1, d_out=epsilon / len(probabilities), bounds=(1e-6, 1e6)
                )
            )

        def one_by_one(counts):
            items = [cell for cell, count in enumerate(counts) for _ in range(count)]
            return [measurement(items) for measurement in each]

        return one_by_one
    release = release_of(dp, kind, domain, epsilon)
    edges = [float(edge) for edge in range(domain + 1)]
    answers = dp.t.make_quantiles_from_counts(bin_edges=edges, alphas=list(probabilities))
    return lambda counts: answers(release(counts)[:domain])


def _privacy():
    dp = prelude()
    return (
        f"map(1) = {dp.m.make_geometric(*counts_of(dp), scale=1.0).map(1)}, from arithmetic that"
        " rounds upwards"
    )


def _error():
    from opendp.accuracy import discrete_laplacian_scale_to_accuracy

    return f"of noise: ± {discrete_laplacian_scale_to_accuracy(1.0, 0.05):.2f}"


def _randomness():
    return "the operating system's; no seeds"


PROBES = {"privacy of what runs": _privacy, "error of an answer": _error, "randomness": _randomness}

FEATURES = {
    "import": prelude,
    "randomised response": lambda: oracle("GRR", 64, 1.0).privatize([1, 2, 3]),
    "bit vectors": lambda: oracle("SUE", 64, 1.0).privatize([1, 2, 3]),
    "counts": lambda: noise("truncated, secure", 1.0, 8)(3, 10),
    "trees": lambda: ranges("tree, b = 4", 64, 1.0)([10] * 64),
    "quantiles": lambda: quantiles("exponential mechanism", 64, 1.0, [0.5])([10] * 64),
}
