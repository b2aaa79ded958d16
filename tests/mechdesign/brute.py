"""Slow, obvious twins of the count mechanisms' mathematics, straight from the definitions of thesis
chapter 6.

Tables are sequences of rows of Fractions, ``P[i][j] = Pr[output i | input j]``. Nothing here knows
the library.
"""

from fractions import Fraction
from itertools import product

SHORT = ("RH", "RM", "CH", "CM", "F", "WH", "S")


def is_stochastic(P):
    """No entry is negative and every column sums to one."""
    return all(p >= 0 for row in P for p in row) and all(
        sum(row[j] for row in P) == 1 for j in range(len(P[0]))
    )


def neighbours(inputs, kind):
    """Unordered pairs of neighbouring inputs: "adjacent", "all", or a distance k."""
    reach = {"adjacent": 1, "all": inputs}.get(kind, kind)
    return [(j, k) for j in range(inputs) for k in range(j + 1, inputs) if k - j <= reach]


def is_private(P, alpha, kind="adjacent"):
    """Definition 20 without its division: alpha P[i|j] <= P[i|k] and the reverse for neighbours j,
    k.
    """
    return all(
        alpha * row[j] <= row[k] and alpha * row[k] <= row[j]
        for row in P
        for j, k in neighbours(len(row), kind)
    )


def worst_ratio(P, kind="adjacent"):
    """The largest ratio of two entries of a row over neighbours; None when an entry is positive and
    its neighbour zero.
    """
    worst = Fraction(1)
    for row in P:
        for j, k in neighbours(len(row), kind):
            low, high = min(row[j], row[k]), max(row[j], row[k])
            if high > 0 and low == 0:
                return None
            if high > 0:
                worst = max(worst, high / low)
    return worst


def row_honest(P):
    """Eq. 6.2."""
    n = len(P) - 1
    return all(P[i][i] >= P[i][j] for i in range(n + 1) for j in range(n + 1))


def row_monotone(P):
    """Eq. 6.3."""
    n = len(P) - 1
    return all(P[i][j - 1] <= P[i][j] for i in range(n + 1) for j in range(1, i + 1)) and all(
        P[i][j + 1] <= P[i][j] for i in range(n + 1) for j in range(i, n)
    )


def column_honest(P):
    """Eq. 6.4."""
    n = len(P) - 1
    return all(P[j][j] >= P[i][j] for i in range(n + 1) for j in range(n + 1))


def column_monotone(P):
    """Eq. 6.5."""
    n = len(P) - 1
    return all(P[i - 1][j] <= P[i][j] for j in range(n + 1) for i in range(1, j + 1)) and all(
        P[i + 1][j] <= P[i][j] for j in range(n + 1) for i in range(j, n)
    )


def fair(P):
    """Eq. 6.6."""
    return all(P[i][i] == P[0][0] for i in range(len(P)))


def weakly_honest(P):
    """Eq. 6.8."""
    return all(P[i][i] >= Fraction(1, len(P)) for i in range(len(P)))


def symmetric(P):
    """Eq. 6.9."""
    n = len(P) - 1
    return all(P[i][j] == P[n - i][n - j] for i in range(n + 1) for j in range(n + 1))


def properties(P):
    """Which of the seven properties of section 6.4 hold."""
    checks = (
        row_honest,
        row_monotone,
        column_honest,
        column_monotone,
        fair,
        weakly_honest,
        symmetric,
    )
    return {short: check(P) for short, check in zip(SHORT, checks, strict=True)}


def loss(P, p=0, d=0, weights=None):
    """O_{p,sum} of Definition 21, counting only errors of more than d steps; weights are uniform
    unless given.
    """
    total = Fraction(0)
    for i, row in enumerate(P):
        for j, entry in enumerate(row):
            weight = Fraction(1, len(row)) if weights is None else weights[j]
            if abs(i - j) > d:
                total += weight * entry * abs(i - j) ** p
    return total


def worst_loss(P, p=0, d=0):
    """The largest over inputs of the expected |i - j|^p beyond d."""
    inputs = len(P[0])
    return max(loss(P, p, d, [Fraction(int(j == k)) for j in range(inputs)]) for k in range(inputs))


def scaled_l0(P):
    """Eq. 6.1: (n + 1)/n - trace/n."""
    n = len(P) - 1
    return Fraction(n + 1, n) - sum(P[i][i] for i in range(n + 1)) / n


def geometric(n, alpha):
    """Definition 22: the input plus two-sided geometric noise (1 - a) a^|d| / (1 + a), clamped to 0
    .. n.

    Pr[noise >= k] is the sum of (a^d - a^(d+1)) / (1 + a) over d >= k, which telescopes to a^k / (1
    + a) for k >= 1 (and is its limit for a = 1).
    """
    a = Fraction(alpha)
    if n == 0:
        return [[Fraction(1)]]

    def exactly(d):
        return (1 - a) * a ** abs(d) / (1 + a)

    def at_least(k):
        return a**k / (1 + a) if k >= 1 else 1 - at_least(1 - k)

    def entry(i, j):
        if i == 0:  # the noise is at most -j
            return at_least(j)
        return at_least(n - j) if i == n else exactly(i - j)

    return [[entry(i, j) for j in range(n + 1)] for i in range(n + 1)]


def explicit_fair(n, alpha):
    """Eq. 6.15, with y chosen so that column 0 sums to one."""
    a = Fraction(alpha)

    def power(i, j):
        distance, margin = abs(i - j), min(j, n - j)
        if distance < margin:
            return distance
        half, odd = divmod(distance + margin, 2)
        return half + odd

    raw = [[a ** power(i, j) for j in range(n + 1)] for i in range(n + 1)]
    y = 1 / sum(row[0] for row in raw)
    return [[y * entry for entry in row] for row in raw]


def uniform(n):
    """Definition 23."""
    return [[Fraction(1, n + 1) for _ in range(n + 1)] for _ in range(n + 1)]


def exponential(quality, base):
    """The exponential mechanism with Pr[i|j] proportional to base^quality[i][j]; base stands for
    exp(eps / (2 s)).
    """
    raw = [[base**q for q in row] for row in quality]
    totals = [sum(row[j] for row in raw) for j in range(len(raw[0]))]
    return [[entry / total for entry, total in zip(row, totals, strict=True)] for row in raw]


def error_histogram(P, weights=None):
    """error (output minus input) -> probability, for every error that the shape of the table
    allows.
    """
    outputs, inputs = len(P), len(P[0])
    histogram = {error: Fraction(0) for error in range(-(inputs - 1), outputs)}
    for i, j in product(range(outputs), range(inputs)):
        histogram[i - j] += P[i][j] * (Fraction(1, inputs) if weights is None else weights[j])
    return histogram


def symmetrised(P):
    """The average of a table and its point reflection (proof of Theorem 8)."""
    n = len(P) - 1
    return [[(P[i][j] + P[n - i][n - j]) / 2 for j in range(n + 1)] for i in range(n + 1)]


def remapping(P, alpha):
    """The T with P = T GM, that is T = P GM^-1; alpha < 1, where GM has an inverse."""
    inverse = _inverse(geometric(len(P[0]) - 1, alpha))
    return [
        [sum(row[k] * inverse[k][j] for k in range(len(inverse))) for j in range(len(inverse))]
        for row in P
    ]


def derivable(P, alpha):
    """Whether P is the geometric mechanism with its output remapped at random: T >= 0 (its columns
    sum to one anyway).
    """
    return all(entry >= 0 for row in remapping(P, alpha) for entry in row)


def _inverse(A):
    """Gauss-Jordan elimination."""
    size = len(A)
    work = [[*row, *(Fraction(int(i == j)) for j in range(size))] for i, row in enumerate(A)]
    for k in range(size):
        pivot = next(r for r in range(k, size) if work[r][k] != 0)
        work[k], work[pivot] = work[pivot], work[k]
        work[k] = [entry / work[k][k] for entry in work[k]]
        for r in range(size):
            if r != k and work[r][k] != 0:
                work[r] = [
                    entry - work[r][k] * top for entry, top in zip(work[r], work[k], strict=True)
                ]
    return [row[size:] for row in work]
