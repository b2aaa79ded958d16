"""Neighbour relations of every kind, and the distances that they mean."""

import math
import random

from mechdesign import Metric


def line(n):
    return Metric([[abs(j - k) for k in range(n + 1)] for j in range(n + 1)])


def capped(n, most):
    return Metric([[min(abs(j - k), most) for k in range(n + 1)] for j in range(n + 1)])


def ring(n):
    return Metric(
        [[min((j - k) % (n + 1), (k - j) % (n + 1)) for k in range(n + 1)] for j in range(n + 1)]
    )


def equal(n):
    return Metric([[int(j != k) for k in range(n + 1)] for j in range(n + 1)])


def arbitrary(n, seed, share=0.7):
    """Random distances, some missing; not a metric in the strict sense, nor symmetric under
    reflection.
    """
    rng = random.Random(seed)
    table = [[0 if j == k else None for k in range(n + 1)] for j in range(n + 1)]
    for j in range(n + 1):
        for k in range(j):
            if rng.random() < share or (j, k) == (1, 0):
                table[j][k] = table[k][j] = rng.randint(1, 4)
    return Metric(table)


def distance(neighbours, j, k):
    """From the words of the documentation: None where j and k are no neighbours."""
    if isinstance(neighbours, Metric):
        return neighbours.distances[j][k]
    if isinstance(neighbours, (tuple, list)):
        return 1 if (j, k) in neighbours or (k, j) in neighbours else None
    reach = {"adjacent": 1, "all": math.inf}.get(neighbours, neighbours)
    return 1 if abs(j - k) <= reach else None


RELATIONS = {
    "adjacent": lambda n: "adjacent",
    "all": lambda n: "all",
    "2": lambda n: 2,
    "half": lambda n: max(1, n // 2),
    "n-1": lambda n: max(1, n - 1),
    "beyond": lambda n: n + 3,
    "pairs": lambda n: [(0, n), (0, 1)],
    "line": line,
    "capped": lambda n: capped(n, 2),
    "ring": ring,
    "equal": equal,
    "arbitrary": lambda n: arbitrary(n, n),
    "sparse": lambda n: arbitrary(n, n, 0.2),
}
