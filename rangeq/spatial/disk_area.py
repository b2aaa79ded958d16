"""DiskArea: reports from a disk around the user's cell are more probable than those beyond it.

Du et al., "Numerical Estimation of Spatial Distributions under Differential Privacy", 2024. The
square wave in two dimensions: the reports are the cells of the grid and of a border as wide as the
disk's radius. The radius is derived here as the square wave's bandwidth is.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy

from frequency.algebra import WORD, bernoulli, uniform
from frequency.core import Aggregate, Reports
from mechdesign import Audit
from mechdesign.base import BitSource, Floats, Items
from mechdesign.symbolic.proof_rules import Randomiser, favouring
from rangeq.local.square_wave import bandwidth
from rangeq.spatial.likelihood import LikelihoodChannel, LikelihoodProtocol

MOST_CELLS = (
    1 << 20
)  #: The most cells of the grid: reports are counted in up to four times as many.

_WHOLE = 1 << 16  # the weight of a cell that lies in the disk as a whole

# The parts of a cell that the radius is a multiple of, so that all devices have the same.
_STEPS = 64


def disk_radius(epsilon: float, across: int, along: int) -> float:
    """Return the radius, in cells, whose reports pass on the most information about even users."""
    # The mutual information of a position in a rectangle of sides X and Y and of its report depends
    # on the radius b only by u = pi b^2 / (X Y + 2 b (X + Y)), the area that is near over the area
    # that is far. It is largest where u = (e^eps eps - e^eps + 1) / (e^eps (e^eps - 1 - eps)),
    # twice the square wave's bandwidth. For a square this is the radius of Du et al.
    # Of the quadratic pi b^2 - 2 u half b - u X Y = 0 the positive root: no two terms cancel
    u, half = 2 * bandwidth(epsilon), across + along
    return (u * half + math.sqrt((u * half) ** 2 + math.pi * u * across * along)) / math.pi


def disk_shares(radius: float) -> Floats:
    """Return the part of each cell in a disk about the middle of the centre: (2 reach + 1,) * 2."""
    reach = max(math.ceil(radius - 0.5), 0)
    edges = np.arange(-reach, reach + 2) - 0.5
    x, y = np.minimum(np.abs(edges), radius)[:, None], np.minimum(np.abs(edges), radius)[None]
    # The area of the quarter disk within [0, x] x [0, y]: y as far as the arc is above it
    bend = np.minimum(np.sqrt(radius**2 - y**2), x)

    def under_the_arc(t: Floats) -> Floats:
        return (t * np.sqrt(radius**2 - t**2) + radius**2 * np.arcsin(t / radius)) / 2

    quarter = bend * y + under_the_arc(x) - under_the_arc(bend)
    # The quarter disk's area with the signs of the quadrants is a cumulative distribution: double
    # differences give the cells
    signed = np.sign(edges)[:, None] * np.sign(edges) * quarter
    return np.clip(np.diff(np.diff(signed, axis=0), axis=1), 0.0, 1.0)


@dataclass(frozen=True)
class DiskChannel(LikelihoodChannel):
    """The channel of a cell of the grid or its border: of the disk about the user's cell, or any.

    With a fixed probability a report is uniform among all cells that any user's disk reaches, else
    a cell of the user's own disk, in proportion to the part of the cell that the disk covers. Both
    are drawn by integers, and the first probability is the least with which a cell within the disk
    is at most exp(epsilon) times as likely as one beyond it.

    Parameters
    ----------
    domain, epsilon, attributes : as of `RecordChannel`
        The attributes are two, the sides of the grid.
    """

    privacy_source: ClassVar[str] = "Du et al. 2024, definition of DAM"
    largest_domain: ClassVar[int] = MOST_CELLS

    @cached_property
    def radius(self) -> Fraction:
        """The radius of the disk, in cells: that of `disk_radius`, rounded, at least 1/2."""
        exact = disk_radius(float(self.privacy.epsilon), *self.attributes.sizes)
        return max(Fraction(round(exact * _STEPS), _STEPS), Fraction(1, 2))

    @cached_property
    def kernel(self) -> Items:
        """The weights of cells about that of the user: shape (2 reach + 1, 2 reach + 1)."""
        shares = disk_shares(float(self.radius))
        return np.rint(shares * _WHOLE).astype(np.int64)

    @property
    def reach(self) -> int:
        """The width of the border in cells."""
        return len(self.kernel) // 2

    @cached_property
    def _reached(self) -> npt.NDArray[np.bool_]:
        """A mask of the cells that are in the disk of some user: the others never come."""
        # A cell is, if it is in that of the nearest user
        return self._weights(nearest=True) > 0

    def _weights(self, nearest: bool) -> Items:
        """The weight of each output under the nearest item, the largest; or under the farthest."""
        offsets, reach = [], self.reach
        for size in self.attributes.sizes:
            place = np.arange(size + 2 * reach) - reach
            far = np.maximum(place, size - 1 - place)
            offsets.append(
                np.maximum(np.maximum(-place, place - (size - 1)), 0) if nearest else far
            )
        padded = np.pad(self.kernel[reach:, reach:], [(0, 1), (0, 1)])
        return padded[np.ix_(*(np.minimum(offset, reach + 1) for offset in offsets))]

    @cached_property
    def _extremes(self) -> list[tuple[int, int]]:
        """The largest and the least weight under any items, of every kind of output."""
        both = np.stack([self._weights(True), self._weights(False)], axis=-1)[self._reached]
        return [(most, least) for most, least in np.unique(both, axis=0).tolist()]

    @cached_property
    def _sums(self) -> Items:
        return np.cumsum(self.kernel)

    @cached_property
    def _outputs(self) -> Items:
        """The cells that come, as numbers."""
        return np.flatnonzero(self._reached)

    @cached_property
    def far_weight(self) -> int:
        """The probability of a report that is any cell, in units of 2^-64: rounded up."""
        # far W + near M most <= ratio far W, near = 2^64 - far, W and most of the whole disk
        excess = len(self._outputs) * int(self.kernel.max())
        return -int(-WORD * excess // (excess + (self.max_ratio - 1) * int(self._sums[-1])))

    @property
    def report_bits(self) -> int:
        return (len(self._outputs) - 1).bit_length()

    def _details(self) -> dict[str, Any]:
        return {
            "sides": list(self.attributes.sizes),
            "disk": hashlib.sha256(repr(self.kernel.tolist()).encode()).hexdigest(),
            "far": str(self.far_weight),
        }

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        far = bernoulli(len(items), self.far_weight, source)
        output = np.empty((len(items), 2), dtype=np.int64)
        number = self._outputs[uniform(int(far.sum()), len(self._outputs), source)]
        output[far] = np.stack(np.divmod(number, self.counts_shape[1]), axis=1)
        weight = uniform(int((~far).sum()), int(self._sums[-1]), source)
        offset = np.searchsorted(self._sums, weight, side="right")
        output[~far] = items[~far] + np.stack(np.divmod(offset, len(self.kernel)), axis=1)
        reports["x"], reports["y"] = output.T

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        x, y = (reports[name].astype(np.int64) for name in ("x", "y"))
        across, along = self.counts_shape
        return (
            super().possible(reports)
            & self._reached[np.minimum(x, across - 1), np.minimum(y, along - 1)]
        )

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return tuple(size + 2 * self.reach for size in self.attributes.sizes)

    def consistent(self, aggregate: Aggregate) -> bool:
        return super().consistent(aggregate) and not aggregate.counts[~self._reached].any()

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        users = np.zeros(self.attributes.sizes, dtype=np.int64)
        np.add.at(users, tuple(items.T), counts)
        total = np.zeros(self.counts_shape, dtype=np.int64)
        far = rng.binomial(users, self.far_weight / WORD)
        outputs = len(self._outputs)
        total.ravel()[self._outputs] += rng.multinomial(far.sum(), np.full(outputs, 1 / outputs))
        shares, width = self.kernel.ravel() / self.kernel.sum(), len(self.kernel)
        for x, y in np.argwhere(users).tolist():
            drawn = rng.multinomial(users[x, y] - far[x, y], shares).reshape(width, width)
            total[x : x + width, y : y + width] += drawn
        return total

    def audit(self) -> Audit:
        near, far = (WORD - self.far_weight) * len(self._outputs), self.far_weight
        background = far * int(self._sums[-1])
        # The probability of an output is linear in the kernel's weight: its largest ratio is that
        # of its largest weight under any items to its least, of which there are few kinds
        worst = max(
            Fraction(background + near * most, background + near * least)
            for most, least in self._extremes
        )
        return Audit(worst, self.max_ratio, "a cell", (0, 1))

    def proof(self) -> Randomiser:
        # A cell is less than a point in it: points of the disk are 1 / alpha times as likely as
        # others
        weight = Fraction(int(self._sums[-1]), int(self.kernel.max()))
        inside, name = weight / len(self._outputs), f"{type(self).__name__}, of a point in a cell"
        return favouring(inside, 1 - inside, relative=True, name=name, source=self.privacy_source)

    def likelihood_of(self, output: tuple[int, int], item: tuple[int, int]) -> Fraction:
        """Return the exact probability Pr[output | item], of what is drawn.

        Parameters
        ----------
        output, item : tuple of int
            A report's ``x`` and ``y``, and a user's.

        Returns
        -------
        Fraction
            In [0, 1].
        """
        far = Fraction(self.far_weight, WORD)
        apart = [place - other for place, other in zip(output, item, strict=True)]
        within = all(0 <= step < len(self.kernel) for step in apart)
        weight = int(self.kernel[apart[0], apart[1]]) if within else 0
        anywhere = Fraction(int(self._reached[output]), len(self._outputs))
        return far * anywhere + (1 - far) * Fraction(weight, int(self._sums[-1]))

    # ----------------------------------------------------------------------------- the server half

    @cached_property
    def _spectrum(self) -> tuple[tuple[int, int], Any]:
        """The Fourier transform of the disk's probabilities, padded: by its lengths."""
        across, along = (scipy.fft.next_fast_len(size, real=True) for size in self.counts_shape)
        lengths = across, along
        return lengths, scipy.fft.rfft2(self.kernel / self.kernel.sum(), lengths)

    def reported(self, frequencies: Floats) -> Floats:
        lengths, spectrum = self._spectrum
        across, along = self.counts_shape
        # A convolution with the disk. Padded to the output's size, so that nothing wraps around;
        # rounding may leave values below 0, whose logarithm the fit takes
        near = scipy.fft.irfft2(scipy.fft.rfft2(frequencies, lengths) * spectrum, lengths)
        far = self.far_weight / WORD
        even = far / len(self._outputs) * frequencies.sum()
        probabilities = even + (1 - far) * np.maximum(near[:across, :along], 0.0)
        return np.where(self._reached, probabilities, 0.0)

    def backward(self, numbers: Floats) -> Floats:
        lengths, spectrum = self._spectrum
        across, along = self.attributes.sizes
        # The transpose: correlation, hence the conjugate spectrum
        near = scipy.fft.irfft2(scipy.fft.rfft2(numbers, lengths) * spectrum.conj(), lengths)
        far = self.far_weight / WORD
        even = far * numbers[self._reached].sum() / len(self._outputs)
        return np.asarray(even + (1 - far) * np.maximum(near[:across, :along], 0.0))


@dataclass(frozen=True)
class DiskArea(LikelihoodProtocol):
    """The disk area mechanism over the cells of a grid, to compare with: see `DiskChannel`.

    The distribution of the cells is found by expectation maximisation. `WaveGrid` errs less in the
    cases that ``docs/benchmarks/maps.md`` lists. Devices without packages have no description of
    it.

    Parameters
    ----------
    sizes, epsilon, n : as of `ConjunctionProtocol`
        The cells along two attributes, at most 2^20 in all, and the privacy loss of one report;
        ``n`` is not used.
    smooth : bool, default False
        EMS instead of EM: neighbouring cells are averaged after every round.

    Examples
    --------
    >>> protocol = DiskArea({"x": 15, "y": 15}, epsilon=2.0)
    >>> float(protocol.channel.radius)
    7.4375
    >>> protocol.audit().holds
    True
    """

    @cached_property
    def channel(self) -> DiskChannel:
        return DiskChannel(self.attributes.size, self.epsilon, self.attributes)
