"""Tests and measures of the dependence of attributes, by their estimated marginals.

A test of independence asks whether the records are a sample of a distribution with p[i, j] = r[i]
c[j]. The statistic of thesis 2.5.2 is n sum (m - r c)^2 / (r c) for a marginal m with margins r and
c. Its critical value in every textbook is for exact counts; an estimate under local privacy has far
more noise, and compared to that value it rejects independence nearly always (thesis 4.5.1,
footnote 3, leaves this open). Here is what it has to be compared to.

Let the columns of U be an orthonormal basis of the vectors orthogonal to sqrt(r), V one for
sqrt(c), and z = (D_r^(-1/2) U)' m (D_c^(-1/2) V), a matrix with one entry for each of the (|r|-1)
(|c|-1) degrees of freedom. Then

- the statistic is n |z|^2, as r, c are the margins of m, or any others: z is 0 for every m = r x' +
  y c', so that an error in r or c enters only times another such error;
- under independence E z = 0; the sampling of the n records gives z the covariance I / n, and the
  protocol, whose estimates are nearly normal, adds to it C, which the estimate's variances of
  weighted sums of cells tell (`MarginalEstimate`): for entries s and t of z it is (Var(s + t) -
  Var(s) - Var(t)) / 2;
- so the statistic is distributed as sum_i lambda_i Z_i^2 with independent standard normal Z_i, and
  lambda the eigenvalues of I + n C. Without noise all are 1: the textbook's chi-square. For two
  binary attributes it is lambda times chi-square with one degree of freedom.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import scipy

from frequency.exceptions import InvalidEstimates
from frequency.marginals.estimate import MarginalEstimate
from mechdesign.base import Floats, printable, shown

# The number of terms of the series for the distribution of a weighted sum of squares: its error is
# then below 1e-5, or 1e-3 near the value 0.
_TERMS = 1 << 14


@dataclass(frozen=True)
class ChiSquareTest:
    """The outcome of a test of independence of two attributes.

    Attributes
    ----------
    statistic : float
        n times the weighted square distance of the marginal from the product of its margins.
    p_value : float
        The probability of a statistic at least as large under independence, the noise of the
        protocol included: to 1e-5 where it is at most 0.9, to 1e-3 above.
    critical : float
        What ``statistic`` exceeds with probability 1 - confidence under independence, noise
        included.
    critical_without_noise : float
        The same for exact counts, which the textbooks say: too small here.
    degrees : int
        Degrees of freedom.
    confidence : float
        1 minus the size of the test.
    """

    statistic: float
    p_value: float
    critical: float
    critical_without_noise: float
    degrees: int
    confidence: float

    @property
    def dependent(self) -> bool:
        """Whether independence is rejected."""
        return self.statistic > self.critical


def chi_square(
    estimate: MarginalEstimate, a: str, b: str, confidence: float = 0.95
) -> ChiSquareTest:
    """Test whether two attributes are independent, with the protocol's noise taken into account.

    Source: thesis 2.5.2, 4.5.1.

    The records are taken for a sample of a population, as in every test of independence. The
    margins are `estimate.marginal` of one attribute, which may know more than the sums of the joint
    marginal; one below its own standard deviation, which would divide by little, is raised to it.

    Parameters
    ----------
    estimate : MarginalEstimate
        Of marginals of two attributes at least (k >= 2), from at least one report.
    a, b : str
        Two attributes of at least two values each.
    confidence : float, default 0.95
        In (0, 1): an independent pair is ``dependent`` with about the probability 1 - confidence.

    Returns
    -------
    ChiSquareTest
        The statistic with its p-value and critical value.

    Raises
    ------
    ValueError
        Attributes that are not there, are the same, or have a single value; nobody who reported on
        them, or an estimate that does not know its errors; another confidence.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, exclusive, got {shown(confidence)}")
    marginal = estimate.marginal((a, b))
    if min(marginal.shape) < 2:
        raise ValueError(
            f"{a if marginal.shape[0] < 2 else b} has a single value, which nothing depends on"
        )
    rows, columns = _margin(estimate, a), _margin(estimate, b)
    if not (np.isfinite(marginal).all() and np.isfinite(rows).all() and np.isfinite(columns).all()):
        raise ValueError(f"nobody reported on {a} and {b}")
    # z as a linear function of the cells: (A m B') flattened is (A kron B) applied to m.
    contrasts: Floats = np.asarray(np.kron(_contrasts(rows), _contrasts(columns)), dtype=np.float64)
    statistic = estimate.n * float(((contrasts @ marginal.ravel()) ** 2).sum())
    # A quadratic form of normal variables is a weighted sum of chi-squares, by the eigenvalues of
    # their covariance; estimated covariances may have slightly negative ones.
    noise = estimate.n * np.linalg.eigvalsh(_covariance(estimate, (a, b), contrasts))
    scales = 1 + np.maximum(noise, 0.0)
    return ChiSquareTest(
        statistic,
        _tail(scales, statistic),
        _critical(scales, 1 - confidence),
        float(scipy.special.chdtri(len(contrasts), 1 - confidence)),
        len(contrasts),
        confidence,
    )


def statistic(marginal: npt.ArrayLike, n: int) -> float:
    """Return the chi-square statistic of n records whose marginal is known exactly.

    Parameters
    ----------
    marginal : array_like
        A proper distribution, shape (rows, columns). Rows and columns that are 0 are left out.
    n : int
        The number of records.

    Returns
    -------
    float
        n times the weighted square distance from independence, at least 0.

    Raises
    ------
    InvalidEstimates
        The marginal is no distribution of two attributes.

    Examples
    --------
    >>> round(statistic([[0.3, 0.2], [0.2, 0.3]], 100), 6)
    4.0
    """
    table = _joint(marginal)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    some = expected > 0
    return float(n * ((table - expected)[some] ** 2 / expected[some]).sum())


def mutual_information(marginal: npt.ArrayLike) -> float:
    """Return the mutual information of two attributes in nats.

    It is at least 0, and 0 if and only if they are independent (thesis 2.5.1). That of an estimated
    distribution is too large on average: noise looks like dependence.

    Parameters
    ----------
    marginal : array_like
        A proper distribution, shape (rows, columns), such as of `MarginalEstimate.distribution`.

    Returns
    -------
    float
        In nats.

    Raises
    ------
    InvalidEstimates
        Not two axes, negative or not finite entries, or a sum other than 1.

    Examples
    --------
    >>> round(mutual_information([[0.5, 0.0], [0.0, 0.5]]), 6)  # log 2
    0.693147
    """
    table = _joint(marginal)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    some = table > 0
    # 0 log 0 = 0; a positive cell has positive margins, so that no quotient is infinite. Rounding
    # can make the sum slightly negative.
    return max(0.0, float((table[some] * np.log(table[some] / expected[some])).sum()))


def pearson(source: MarginalEstimate | npt.ArrayLike) -> Floats:
    """Return Pearson's correlation of attributes with the values 0, 1, ... (thesis 4.4.1).

    Parameters
    ----------
    source : MarginalEstimate or array_like
        A distribution of two attributes, shape (rows, columns): the result is one number, of shape
        (). Or an estimate of marginals (k >= 2): the result has shape (attributes, attributes),
        from `MarginalEstimate.distribution` of every pair, 1 on the diagonal.

    Returns
    -------
    numpy.ndarray
        In [-1, 1]; NaN for an attribute that has one value only.

    Raises
    ------
    InvalidEstimates
        What is no distribution of two attributes.
    ValueError
        An estimate without reports, or of marginals of one attribute.

    Examples
    --------
    >>> pearson([[0.4, 0.1], [0.1, 0.4]]).round(6).tolist()
    0.6
    """
    if isinstance(source, MarginalEstimate):
        names = source.domain.attributes
        result = np.eye(len(names))
        for i, a in enumerate(names):
            for j, b in enumerate(names[:i]):
                result[i, j] = result[j, i] = pearson(source.distribution((a, b)))
        return result
    table = _joint(source)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    x, y = (np.arange(len(masses)) - masses @ np.arange(len(masses)) for masses in (rows, columns))
    product = float((rows @ x**2) * (columns @ y**2))
    correlation = float(x @ table @ y) / product**0.5 if product > 1e-300 else np.nan
    return np.asarray(np.clip(correlation, -1.0, 1.0))


def _joint(marginal: npt.ArrayLike) -> Floats:
    table = np.asarray(marginal, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise InvalidEstimates(
            f"a marginal of two attributes has two axes, got shape {table.shape}"
        )
    if not np.isfinite(table).all() or table.min() < 0 or abs(float(table.sum()) - 1) > 1e-6:
        raise InvalidEstimates(
            f"the marginal must be a distribution: its least entry is {float(table.min())!r}, its"
            f" sum {float(table.sum())!r}; see MarginalEstimate.distribution"
        )
    return table


def _margin(estimate: MarginalEstimate, attribute: str) -> Floats:
    margin, deviations = (
        estimate.marginal((attribute,)),
        np.sqrt(estimate.cells((attribute,)).variance),
    )
    # The statistic divides by margins: one that noise makes tiny or negative would decide the test.
    raised = np.maximum(margin, np.maximum(deviations, 1 / max(estimate.n, 1)))
    return raised / raised.sum()


def _contrasts(margin: Floats) -> Floats:
    """Return (D^(-1/2) U)': shape (values - 1, values)."""
    root = np.sqrt(margin)
    return scipy.linalg.null_space(root[None]).T / root


def _covariance(estimate: MarginalEstimate, attributes: tuple[str, str], weights: Floats) -> Floats:
    """Return the covariance of weighted sums of cells over the protocol's noise: (sums, sums)."""
    first, second = np.triu_indices(len(weights), 1)
    # Polarisation: covariances from variances of sums, which is all that an estimate tells.
    rows = np.concatenate([weights, weights[first] + weights[second]])
    variance = np.asarray(estimate.linear(attributes, rows).variance)
    single = variance[: len(weights)]
    result = np.diag(single)
    result[first, second] = result[second, first] = (
        variance[len(weights) :] - single[first] - single[second]
    ) / 2
    return result


def _tail(scales: Floats, value: float) -> float:
    """Return Pr[sum of scales times squares of standard normals > value], value >= 0."""
    count, largest = len(scales), float(scales.max())
    if value <= 0:
        return 1.0
    if count == 1:
        return float(scipy.special.chdtrc(1, value / largest))
    # Imhof (1961) inverts the characteristic function, Davies (1973) by the midpoint rule: its only
    # error but for truncation is the probability of what lies a period away from the value, below
    # 1e-12 here
    step = 2 * np.pi / (value + largest * float(scipy.special.chdtri(count, 1e-12)))
    u = (np.arange(_TERMS) + 0.5) * step
    angle, size = -value * u / 2, np.ones(_TERMS)
    for scale in scales:
        angle += np.arctan(scale * u) / 2
        size *= (1 + (scale * u) ** 2) ** 0.25
    return float(np.clip(0.5 + (np.sin(angle) / (u * size)).sum() * step / np.pi, 0.0, 1.0))


def _critical(scales: Floats, size: float) -> float:
    """Return the critical value: the one with `_tail` = size."""
    # The sum is at most the largest scale times a plain chi-square: that quantile is an upper end
    # of the bracket, and the answer itself if all scales are equal.
    largest = float(scales.max()) * float(scipy.special.chdtri(len(scales), size))
    if len(scales) == 1 or np.ptp(scales) < 1e-9 * scales.max():
        return largest
    return float(
        scipy.optimize.brentq(
            lambda value: _tail(scales, value) - size, 0.0, largest * (1 + 1e-6) + 1e-9, rtol=1e-9
        )
    )


# ------------------------------------------------------------------------------------------------
# Chow-Liu trees: the best approximation of a distribution by a tree (thesis 2.5.1).


#: A function from the names of two attributes to their proper distribution, of shape (values of the
#: first, values of the second).
Marginals = Callable[[str, str], npt.ArrayLike]


@dataclass(frozen=True)
class ChowLiuTree:
    """A spanning tree of attributes.

    Attributes
    ----------
    attributes : tuple of str
        The nodes.
    edges : tuple of (str, str)
        Pairs of attributes, one fewer than attributes, those of the largest information first.
    informations : tuple of float
        The mutual information of each edge in nats, by the marginals that it was learned from.
    """

    attributes: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    informations: tuple[float, ...]

    def total(self, marginals: Marginals | None = None) -> float:
        """Return the sum of the edges' mutual informations in nats, by the marginals given.

        None: those that the tree was learned from. The divergence of the tree's distribution from
        the true one is a constant less this sum by the true marginals (Chow and Liu 1968): how much
        less it is than the true tree's is what learning from estimates loses (thesis Figure 4.9).
        """
        if marginals is None:
            return float(sum(self.informations))
        return float(sum(mutual_information(marginals(a, b)) for a, b in self.edges))

    def __str__(self) -> str:
        return "\n".join(
            printable(f"{a} - {b}  {value:.4f}")
            for (a, b), value in zip(self.edges, self.informations, strict=True)
        )


def chow_liu(
    source: MarginalEstimate | Marginals, attributes: Sequence[str] | None = None
) -> ChowLiuTree:
    """Return the spanning tree of the largest total mutual information.

    Source: Chow and Liu 1968; thesis 2.5.1, 4.5.2.

    Parameters
    ----------
    source : MarginalEstimate or Marginals
        An estimate of marginals (k >= 2), whose proper `MarginalEstimate.distribution` is taken; or
        a function that gives the distribution of two attributes.
    attributes : sequence of str, optional
        The nodes, distinct; None: all of the estimate's. A function needs them.

    Returns
    -------
    ChowLiuTree
        The edges, those of the largest information first.

    Raises
    ------
    ValueError
        No reports, no attributes, the same one twice, or one that the estimate does not have.

    Examples
    --------
    >>> same, apart = [[0.5, 0.0], [0.0, 0.5]], [[0.3, 0.2], [0.2, 0.3]]
    >>> tree = chow_liu(lambda a, b: same if a + b == "xy" else apart, "xyz")
    >>> tree.edges[0], round(tree.total(), 4)
    (('x', 'y'), 0.7133)
    """
    if isinstance(source, MarginalEstimate):
        names = (
            source.domain.attributes if attributes is None else source.domain.checked(attributes)
        )
        return chow_liu(lambda a, b: source.distribution((a, b)), names)
    names = tuple(attributes or ())
    if not names or len(set(names)) < len(names):
        raise ValueError(f"a tree needs attributes, distinct ones, got {shown(attributes)}")
    pairs = list(combinations(range(len(names)), 2))
    values = np.array([mutual_information(source(names[i], names[j])) for i, j in pairs])
    # A weight of 0 would be no edge to scipy: all are at least 1. Its graphs are of 32-bit indices,
    # older releases know no other.
    rows, columns = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    weights = scipy.sparse.csr_array(
        (1 + values.max(initial=0.0) - values, (rows, columns)), shape=(len(names), len(names))
    )
    # All spanning trees have as many edges: subtracting from a constant turns the maximum into a
    # minimum and keeps the order.
    spanning = scipy.sparse.csgraph.minimum_spanning_tree(weights).tocoo()
    informations = dict(zip(pairs, values.tolist(), strict=True))
    chosen = sorted(
        zip(spanning.row.tolist(), spanning.col.tolist(), strict=True),
        key=lambda edge: (-informations[edge], edge),
    )
    return ChowLiuTree(
        names,
        tuple((names[i], names[j]) for i, j in chosen),
        tuple(informations[edge] for edge in chosen),
    )
