"""The strategy of least error under Gaussian noise: its Gram matrix, and a proved lower bound.

For queries with the Gram matrix G = W'W, and a strategy A with X = A'A whose columns have norms of
at most 1, the sum of the least-squares answers' variances is tr(G X^+), per unit of noise variance
(Li, Miklau, Hay, McGregor and Rastogi 2015: The matrix mechanism, section 3). So the optimum is

    minimise tr(G X^+)  over X >= 0 with  diag X <= 1,

a convex program. For every mu >= 0, with M = diag(mu), Lagrangian duality gives

    tr(G X^+) >= (tr (M^(1/2) G M^(1/2))^(1/2))^2 / sum(mu);

mu = 1 is the spectral bound of Li and Miklau (2013). At the optimum mu = diag((M^(1/2) G
M^(1/2))^(1/2)) up to a factor, and X = M^(-1/2) (M^(1/2) G M^(1/2))^(1/2) M^(-1/2): the fixed-point
iteration of Denisov, McMahan, Rush, Smith and Guha Thakurta (NeurIPS 2022, section 3). It is done
in floats. The bound holds for any mu, so it needs no convergence, and its evaluation bounds all
rounding: see `trace_of_root`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
from flint import fmpz_poly

from mechdesign.base import Floats, Integers, whole
from rangeq.central.matrix_mechanism.workload import Workload

_ROUNDS = 200

_LEAST = 1e-12  # eigenvalues below it, relative to the largest, are taken for 0

_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class GramOptimum:
    """A strategy's Gram matrix, and how near its error is to the least."""

    gram: Floats  # X, shape (cells, cells), of G's range, with a diagonal of at most 1
    value: float  # tr(G X^+), as floats have it
    bound: float  # a proved lower bound on it, for all strategies


def optimal_gram(
    gram: Floats, tolerance: float = 1e-4, error: float = 0.0, rank: int | None = None
) -> GramOptimum:
    """Minimise tr(G X^+) over X of a diagonal of at most 1, by some tens of eigendecompositions."""
    # A cell without weight in any query has a row of zeros in G: it needs no column of the
    # strategy, and its mu would run to 0
    asked = np.flatnonzero(np.diag(gram) > 0)
    inner = gram[np.ix_(asked, asked)]
    scale = float(np.abs(inner).max())
    inner = inner / scale  # no square overflows
    # mu = 1 is the spectral bound: the first round has it, and whatever comes later is compared
    # with it
    mu, ranks = np.ones(len(asked)), np.arange(len(asked))
    best, best_mu, optimum, value = 0.0, mu, np.eye(len(asked)), math.inf
    for _ in range(_ROUNDS):
        m = np.sqrt(mu)
        # One decomposition gives the root, its trace (the bound) and its pseudoinverse (the error);
        # a Cholesky factor would give none of the three, and needs G of full rank
        values, vectors = np.linalg.eigh(m[:, None] * inner * m)
        # With the rank known so many eigenvalues are kept as there are: a threshold might take a
        # small one of the range for one of the null space, and then X would lose a query
        kept = values > _LEAST * values[-1] if rank is None else ranks >= len(asked) - rank
        bound = float(np.sqrt(np.maximum(values[kept], 0.0)).sum() ** 2 / mu.sum())
        # Of those the least may round to below 0, and is divided by
        roots, vectors = np.sqrt(np.maximum(values[kept], _LEAST * values[-1])), vectors[:, kept]
        if bound > best:
            best, best_mu = bound, mu
        diagonal = np.einsum("ij,j,ij->i", vectors, roots, vectors)
        # X = N M^(-1/2) root M^(-1/2) N; where G has a null space, N = 1 keeps it, up to a factor
        norms = diagonal / mu if kept.all() else np.full(len(mu), (diagonal / mu).max())
        back = m * np.sqrt(norms)
        # tr(G X^-) with M^(1/2) root^+ M^(1/2) as X^-. It is a generalised inverse and not always
        # the pseudoinverse, but as X has the range of G, the trace is the same for all of them
        trace = float(np.sum(((vectors / roots).T @ (back[:, None] * inner * back)).T * vectors))
        # Neither the bound nor the error is monotone along the iteration, so the best of each is
        # kept, from whatever rounds they come
        if trace < value:
            value = trace
            part = vectors * np.sqrt(roots) / back[:, None]
            optimum = part @ part.T
        # A duality gap: the stop is about the error itself, and not about how little mu still moves
        if value <= (1 + tolerance) * best:
            break
        # The plain fixed point is mu = diagonal. For a diagonal G it halves the distance in log mu,
        # and this step is exact
        mu = diagonal * diagonal / mu  # twice the step of the fixed point, in logarithms
        # The bound does not depend on the scale of mu. A mu of 0 would stay 0, and M^(-1/2) does
        # not exist there
        mu = np.maximum(mu / mu.mean(), _LEAST)
    # The bound is proved again from G as it was given: those of the rounds were floats, good enough
    # to steer by
    full = np.zeros_like(gram)
    full[np.ix_(asked, asked)] = optimum
    root = np.zeros(len(gram))
    root[asked] = np.sqrt(best_mu)
    return GramOptimum(full, value * scale, dual_bound(gram, root, error))


def dual_bound(gram: Floats, root: Floats, error: float = 0.0) -> float:
    """Return a proved lower bound on tr(G X^+) for every X with a diagonal of at most 1."""
    largest = float(root.max())
    shares = root / largest  # at most 1, so an error of G grows by no factor
    norm = trace_of_root(shares[:, None] * gram * shares, error, products=2)
    # Rounded up, and the quotient down: a sum of k terms of one sign is off by k u at most,
    # relative to it. So the result is below the bound that mu has
    total = float((shares * shares).sum()) * (1 + (len(shares) + 2) * _UNIT * 2)
    return norm * norm / total * (1 - 8 * _UNIT)


def trace_of_root(matrix: Floats, error: float = 0.0, products: int = 0) -> float:
    """Return a proved lower bound on the trace of the root of a positive semidefinite matrix."""
    # With K = Q L Q' nearly, for floats Q and L >= 0, let d bound the norm of Q'Q - I and r that of
    # K - Q L Q'. Then (Ostrowski, Weyl) the eigenvalues of K are at least (1 - d) l - r each. Both
    # norms are bounded by the Frobenius norms of computed matrices and of the rounding of their
    # products: a sum of k products of floats is known to within k u / (1 - k u) times the sum of
    # their absolute values, in whatever order it is computed (Higham 2002, section 3.1).
    size = len(matrix)
    values, vectors = np.linalg.eigh(matrix)
    # Q L Q' must be positive semidefinite for Ostrowski's theorem, whatever `eigh` returned
    values = np.maximum(values, 0.0)
    # Higham's gamma_k: 4 more than the size for scaling, subtraction and the norm's own square
    terms = (size + 4) * _UNIT / (1 - (size + 4) * _UNIT)
    away = np.abs(vectors)
    apart = vectors.T @ vectors
    apart[np.diag_indices(size)] -= 1
    # Frobenius norms are above spectral ones, and a sum of squares: no eigenvalue needs to be
    # computed to bound them
    defect = _norm(apart) + terms * _norm(away.T @ away) + 2 * size * _UNIT
    rest = matrix - (vectors * values) @ vectors.T
    rounding = terms * _norm((away * values) @ away.T) + (products + 2) * _UNIT * _norm(matrix)
    residual = _norm(rest) + rounding + error
    slack = 1 + 2.0**-20  # for the rounding of the bounds themselves
    # Ostrowski for Q, which is not quite orthogonal; then Weyl for the residual. An eigenvalue
    # below the residual counts as 0, so that a singular matrix has a bound, too
    lower = (1 - slack * defect) * values - slack * residual
    return float(np.sqrt(np.maximum(lower, 0.0)).sum()) * (1 - (size + 4) * 2 * _UNIT)


def _norm(matrix: Floats) -> float:
    return float(np.linalg.norm(matrix))


# ------------------------------------------------------------------------------------------------
# How small the error of prefixes or ranges can be under Gaussian noise: proved, up to 2^20 cells.
#
# The error of a strategy A with X = A'A and columns of norms of at most 1 is tr(G X^+), and for all
# mu >= 0, with M = diag(mu), it is at least (tr (M^(1/2) G M^(1/2))^(1/2))^2 / sum(mu), as
# above. Prefixes of weight p and ranges of weight r have
#
#     G[i, j] = (p + r (i + 1)) (size - j)  for i <= j,
#
# which is p + r (size + 1) times the inverse of the second difference L along a path: tridiagonal,
# with rows (-1, 2, -1), but for the first, (2 - p / (p + r), -1). The right end of the path is
# fixed, the left one free for prefixes alone, and fixed for ranges alone. So with T = M^(-1/2) L
# M^(-1/2) what is needed is tr T^(-1/2), and, for the next mu, the diagonal of that matrix.
#
# For every x > 0 the sum of 2^k / (4^k + x) over all integers k, times 2 ln 2 / pi, is x^(-1/2) up
# to a factor within 1 +- 2.8e-6: with h = ln 2 and c = ln(x) / 2 it is x^(-1/2) h / pi times the
# sum of sech(k h - c), which by Poisson's summation is pi / h times a sum of sech(pi^2 n / h) cos(2
# pi n c / h). All terms are positive, so that any of them, divided by 1 + 2.8e-6, stay below
# x^(-1/2). And
#
#     mu_j (L + s M)^(-1)[j, j] = mu_j / (a_j + b_j + s mu_j),
#
# where a_(j+1) = (a_j + s mu_j) / (1 + a_j + s mu_j) from the left, beginning with r / (p + r), and
# b likewise from the right, beginning with 1: elimination from both ends. Nothing is subtracted,
# and the step from a_j to a_(j+1) makes relative errors smaller, so that rounding adds up to a
# known multiple of the number of cells.


LARGEST_PATH = 1 << 20  #: The most cells of a path.

_ABOVE = 2.8e-6  # A bound on twice the sum of sech(pi^2 n / ln 2) over n >= 1, which is 2.62e-6

_PATH_ROUNDS = 3

_CHUNK = 1 << 22

_SCALED = 8  # after so many steps numbers are scaled by a power of two: a step is less than 2^100


def path_weights(workload: Workload) -> tuple[float, float] | None:
    """The weights of prefixes and of ranges in a workload of nothing else."""
    weights = {"prefixes": 0.0, "ranges": 0.0}
    if len(workload.sizes) > 1 or workload.cells > LARGEST_PATH:
        return None
    for term in workload.terms:
        if term.factors[0].name not in weights:
            return None
        weights[term.factors[0].name] += term.weight
    return weights["prefixes"], weights["ranges"]


def least_path_error(prefixes: float, ranges: float, size: int) -> float:
    """A proved lower bound on the error of prefixes and ranges, for all strategies."""
    size = whole(size, "size", 1, LARGEST_PATH)
    start = ranges / (prefixes + ranges)
    mu, best = np.ones(size), 0.0
    # Any mu gives a bound, so the number of rounds is about its tightness alone
    for _ in range(_PATH_ROUNDS):
        diagonal = root_diagonal(mu, start)
        best = max(best, float(diagonal.sum()) ** 2 / float(mu.sum()))
        mu = diagonal**2 / mu  # stays where mu is the diagonal, and comes there in few rounds
        mu /= mu.mean()
    # Elimination rounds less than 16 size + 1024 times on the way to a number
    slack = (64 * size + 4096) * 2.0**-53
    return (prefixes + ranges * (size + 1)) * best * (1 - slack) / (1 + _ABOVE) ** 2


def root_diagonal(mu: Floats, start: float) -> Floats:
    """Return the diagonal of (M^(1/2) L^(-1) M^(1/2))^(1/2), nearly, for mu of shape (size,)."""
    size = len(mu)
    # Eigenvalues of T are within 1 / (size^2 max(mu)) and 4 / min(mu), roughly
    least = -math.ceil(math.log2(size * math.sqrt(mu.max()))) - 12
    most = math.ceil(1 - math.log2(mu.min()) / 2) + 12
    # Terms fall by a factor of 2 for each node away from log2(x) / 2, so that with 12 more nodes at
    # either end about 2^-12 of the sum is lost; what is left out only lowers the bound
    nodes = np.arange(least, most + 1)
    step, total = max(1, _CHUNK // size), np.zeros(size)
    for begin in range(0, len(nodes), step):
        some = nodes[begin : begin + step, None]
        added = 4.0**some * mu
        # Elimination from both ends meets at cell j: a_j is the Schur complement of all cells
        # before it, b_j that of all after it
        left = _eliminated(added, start)
        right = _eliminated(added[:, ::-1], 1.0)[:, ::-1]
        total += (2.0**some * mu / (left + right + added)).sum(axis=0)
    return total * (2 * math.log(2) / math.pi)


def _eliminated(added: Floats, start: float) -> Floats:
    """Return a_0 = start, a_(j+1) = (a_j + c_j) / (1 + a_j + c_j), for each row c of `added`."""
    # A step is the matrix (1, c; 1, 1 + c) on numerator and denominator, so steps are put together
    # as products: the cells are cut into blocks, and done at the same time in all of them
    nodes, size = added.shape
    blocks = math.isqrt(size - 1) + 1
    length = -(-size // blocks)
    padded = np.zeros((nodes, blocks * length))
    padded[:, :size] = added
    cells = np.ascontiguousarray(padded.reshape(nodes, blocks, length).transpose(2, 0, 1))
    # The product of a block's steps: two columns of a numerator and a denominator
    above, below = np.zeros((2, 2, nodes, blocks))
    above[0], below[1] = 1.0, 1.0
    for done, c in enumerate(cells):
        above += c * below
        below += above
        # The fraction does not change when both columns get the same factor, and powers of two are
        # exact: this keeps products of 2^20 steps from overflowing at no rounding
        if done % _SCALED == 0:
            _, shift = np.frexp(below.max(axis=0))
            above, below = np.ldexp(above, -shift), np.ldexp(below, -shift)
    value = np.full(nodes, start)
    # Only here one block waits for another: about sqrt(size) steps instead of size
    starts = np.empty((nodes, blocks))
    for block in range(blocks):
        starts[:, block] = value
        numerator = above[0, :, block] * value + above[1, :, block]
        value = numerator / (below[0, :, block] * value + below[1, :, block])
    results, values = np.empty_like(cells), starts
    for place, c in enumerate(cells):
        results[place] = values
        total = values + c
        values = total / (1 + total)
    return results.transpose(1, 2, 0).reshape(nodes, -1)[:, :size]


# ------------------------------------------------------------------------------------------------
# ReflectedKernel: functions of the discrete Laplacian on an interval, applied by FFT.


_LEAF = 32


class ReflectedKernel:
    """A symmetric matrix whose entries depend on the distance of two cells, and of a reflection.

    For a sequence f it is one of

        K[i, j] = f(i - j) + f(i + j + 1),  f even and antiperiodic: f(d + 2 size + 1) = -f(d),
        K[i, j] = f(i - j) - f(i + j + 2),  f even and periodic: f(d + 2 size + 2) = f(d).

    These matrices are the functions of the second difference with a free left end and a fixed right
    end, and of that with two fixed ends: they have the eigenvectors cos(pi (2k - 1) (2i + 1) /
    (4 size + 2)), or sin(pi k (i + 1) / (size + 1)), k = 1 .. size, whatever f is. So products,
    powers and diagonals come from FFTs. With f(d) (-1)^d the first kind is f(i - j) - f(i + j + 1)
    of period 2 size + 1, apart from signs of rows and columns, so that both are computed alike.

    `half` is f(0), f(1), ..: integers or floats, size + 1 of the first kind, size + 2 of the
    second.
    """

    def __init__(self, half: npt.NDArray[Any], size: int) -> None:
        self.half, self.size = half, size
        self.shift = len(half) - size
        self.period = 2 * size + self.shift
        # S K S with S = diag((-1)^i) turns the first kind into f(i - j) - f(i + j + 1): both kinds
        # then act on odd sequences as convolutions, and one code serves both
        self._signs = (-1) ** np.arange(size) if self.shift == 1 else np.ones(size, dtype=np.int64)
        self._mirror = 1 if self.shift == 1 else -1

    @classmethod
    def of_spectrum(cls, eigenvalues: Floats, shift: int) -> ReflectedKernel:
        """Return the matrix with given eigenvalues, shape (size,)."""
        size = len(eigenvalues)
        # An odd sequence has no component of frequency 0, nor of the highest one of an even period:
        # what f has there does not matter, and 0 is as good as anything
        spectrum = np.zeros(size + shift)
        # Alternating signs move every frequency by half a turn: so the order of the eigenvalues of
        # the first kind is reversed
        spectrum[1 : size + 1] = eigenvalues[::-1] if shift == 1 else eigenvalues
        half = scipy.fft.irfft(spectrum, n=2 * size + shift)[: size + shift]
        if shift == 1:
            half *= (-1.0) ** np.arange(size + 1)
        return cls(half, size)

    @cached_property
    def _table(self) -> npt.NDArray[Any]:
        """One period of f with the signs that make it even and periodic."""
        half = self.half
        if self.shift == 1:
            half = half * (-1) ** np.arange(len(half))
        return np.concatenate([half, half[1 : self.period - len(half) + 1][::-1]])

    @cached_property
    def eigenvalues(self) -> Floats:
        """The eigenvalues in order of frequency, shape (size,)."""
        spectrum = scipy.fft.rfft(self._table.astype(np.float64)).real[1 : self.size + 1]
        return spectrum[::-1] if self.shift == 1 else spectrum

    def power(self, exponent: float) -> ReflectedKernel:
        """A power of the matrix."""
        return ReflectedKernel.of_spectrum(self.eigenvalues**exponent, self.shift)

    def _reflected(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The odd sequence of one period that values begin."""
        odd = np.zeros((*values.shape[:-1], self.period), dtype=values.dtype)
        odd[..., : self.size] = values * self._signs
        odd[..., self.size + 1 : 2 * self.size + 1] = -odd[..., : self.size][..., ::-1]
        return odd

    def apply(self, values: Floats) -> Floats:
        """Return the matrix times vectors, shape (..., size)."""
        spectrum = np.zeros(self.period // 2 + 1)
        spectrum[1 : self.size + 1] = self.eigenvalues[:: -1 if self.shift == 1 else 1]
        # A product with K is a cyclic convolution of the odd extension, so that its transform is
        # multiplied by the eigenvalues
        moved = scipy.fft.rfft(self._reflected(values)) * spectrum
        return scipy.fft.irfft(moved, n=self.period)[..., : self.size] * self._signs

    def apply_exactly(self, values: Integers) -> Integers:
        """A matrix of integers times such a vector, by exact multiplication of polynomials."""
        # Noise goes on the exact numbers: an FFT of floats would round sums of up to 62 bits, and
        # the sensitivity would no longer be that of the integer matrix
        product = fmpz_poly(self._table.tolist()) * fmpz_poly(self._reflected(values).tolist())
        coefficients = [int(c) for c in product.coeffs()[: self.period + self.size]]
        coefficients += [0] * (self.period + self.size - len(coefficients))
        # Cyclic convolution: coefficients from one period on wrap around to the beginning
        once = np.array(coefficients[: self.size], dtype=np.int64)
        again = np.array(coefficients[self.period :], dtype=np.int64)
        return (once + again) * self._signs

    def square_diagonal(self) -> list[int]:
        """The exact diagonal of the square of the matrix, which is of integers."""
        table = fmpz_poly(self._table.tolist())
        coefficients = [int(c) for c in (table * table).coeffs()]
        coefficients += [0] * (2 * self.period - len(coefficients))
        # The square of K has the self-convolution of f as its kernel g, and K^2[j, j] = g(0) - g(2j
        # + shift)
        folded = [a + b for a, b in zip(coefficients, coefficients[self.period :], strict=False)]
        return [folded[0] - folded[2 * j + self.shift] for j in range(self.size)]

    @cached_property
    def _full(self) -> npt.NDArray[Any]:
        """f(0 .. period - 1)."""
        rest = self.half[1 : self.period - len(self.half) + 1][::-1]
        return np.concatenate([self.half, -self._mirror * rest])

    def diagonal(self) -> npt.NDArray[Any]:
        """K[i, i], shape (size,)."""
        return self.half[0] + self._mirror * self._full[self.shift :: 2][: self.size]

    def column_sums(self) -> npt.NDArray[Any]:
        """The sums of the columns, shape (size,): exact for integers."""
        sums = np.concatenate([[0], np.cumsum(self._full)])
        j = np.arange(self.size)
        near = sums[j + 1] + sums[self.size - j] - self.half[0]
        far = sums[self.size + j + self.shift] - sums[j + self.shift]
        return near + self._mirror * far

    def lower_apply(self, values: Floats, lag: int = 0) -> Floats:
        """Return the part of the matrix on and below a diagonal, times a vector."""
        rest = self.size - lag
        # The part that depends on i - j is a causal convolution; twice the length keeps it from
        # wrapping around
        length = scipy.fft.next_fast_len(2 * rest, real=True)
        product = scipy.fft.rfft(self._full[lag : self.size], length)
        product = product * scipy.fft.rfft(values[:rest], length)
        result = np.zeros(self.size)
        result[lag:] = scipy.fft.irfft(product, length)[:rest]
        # The reflected part depends on i + j, and its triangle is no convolution: it is cut into
        # squares, which are
        far = self._full[self.shift + lag :][: 2 * rest - 1]
        result[lag:] += self._mirror * _hankel_triangle(far, values[:rest])
        return result


def _hankel_triangle(kernel: Floats, values: Floats) -> Floats:
    """Sum kernel[i + j] values[j] over j <= i, for each i."""
    # The triangle is cut into squares, each half as large as the one before, down to small
    # triangles. All squares of a size are done at once.
    size = len(values)
    blocks = 1 << max(0, (size - 1) // _LEAF).bit_length()
    padded = _LEAF * blocks
    given, wide, sums = np.zeros(padded), np.zeros(2 * padded), np.zeros(padded)
    given[:size], wide[: len(kernel)] = values, kernel
    place = np.arange(padded).reshape(blocks, _LEAF)
    leaves, results = given.reshape(blocks, _LEAF), sums.reshape(blocks, _LEAF)
    for apart in range(_LEAF):
        inside = slice(0, _LEAF - apart)
        results[:, apart:] += wide[2 * place[:, inside] + apart] * leaves[:, inside]
    width = _LEAF
    while width < padded:
        # A square takes the first half of a block to the second half of the sums: a correlation,
        # hence the conjugate. Of the cyclic one of length 2 width the first `width` places are free
        # of wrapping
        square = scipy.fft.rfft(wide.reshape(-1, 4 * width)[:, width : 3 * width])
        left = scipy.fft.rfft(given.reshape(-1, 2, width)[:, 0], 2 * width)
        product = scipy.fft.irfft(square * left.conj(), 2 * width)
        sums.reshape(-1, 2, width)[:, 1] += product[:, :width]
        width *= 2
    return sums[:size]
