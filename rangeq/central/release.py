"""Release: what a curator has published of a table, with its schema, as an object and as a file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from frequency.core import Answer, WeightedCounts, by_place, unsealed, write_sealed
from frequency.exceptions import InvalidQuestion
from frequency.schema import Schema, SurveyEstimate
from frequency.schema.estimate import Bins
from mechdesign import ZCDP, ApproximateDP
from mechdesign.accounting.gaussian_loss import GaussianLoss
from mechdesign.base import (
    ANYTHING,
    FLAG,
    FRACTION_TEXT,
    Integers,
    array_of,
    brief,
    format_of,
    intact,
    list_of,
    listed,
    one_of,
    opened,
    optional,
    printable,
    record,
    replacing,
    require_same,
    set_fields,
    shown,
    whole_number,
)
from mechdesign.noise.discrete import DiscreteLaplace
from mechdesign.noise.staircase import GroupedNoise
from rangeq.central.estimate import CentralEstimate
from rangeq.central.hierarchy import CentralFlat, Hierarchy, Wavelet
from rangeq.central.inputs import (
    LARGEST_MARGINALS,
    STORED_NUMBER,
    InvalidHistogram,
    MarginalCounts,
    cells_along,
)
from rangeq.central.matrix_mechanism.adaptive import AdaptiveMarginals
from rangeq.central.matrix_mechanism.mechanism import MatrixMechanism
from rangeq.central.matrix_mechanism.strategy_file import (
    MATRIX_MECHANISM,
    NAME,
    mechanism_content,
    mechanism_of_content,
    strategy_numbers,
)
from rangeq.central.mechanism import CentralMechanism
from rangeq.central.persons import LARGEST_ROWS, checked_groups, squared_change, unit_of
from rangeq.central.posterior import NoPosterior
from rangeq.central.released_keys import ReleasedKeys
from rangeq.central.released_quantiles import ReleasedQuantiles
from rangeq.central.sums import MOST_ADDED, GroupedSums

#: What the header of a file says that it is; version 1 does not say whether draws were seeded.
#: Version 3 is of tables with several rows a person, version 4 of sums of numbers, and version 5 of
#: persons in several groups, and of numbers of different values.
KIND, VERSION, OF_PERSONS, OF_NUMBERS, OF_GROUPS = "release", 2, 3, 4, 5

_MECHANISMS = {kind.__name__: kind for kind in (CentralFlat, Hierarchy, Wavelet)}

_SIMPLE = record({"name": one_of(CentralFlat.__name__, Wavelet.__name__), "epsilon": STORED_NUMBER})

_TREE = record(
    {
        "name": one_of(Hierarchy.__name__),
        "epsilon": STORED_NUMBER,
        "branching": array_of(whole_number(1)),
        "inference": FLAG,
        "budget": list_of(STORED_NUMBER),
    }
)

_FIELDS = {
    "schema": ANYTHING,  # which `Schema.of_content` checks
    "mechanism": _SIMPLE | _TREE | MATRIX_MECHANISM,
    "alphas": list_of(optional(FRACTION_TEXT)),
}

# Of a person: the most rows that count, and the delta of what is promised.
_PERSON = {"rows": whole_number(0, LARGEST_ROWS), "delta": optional(FRACTION_TEXT)}

# How many attributes are numbers that are added up, and whether their squares are, too.
_SUMS = {"numbers": whole_number(1, MOST_ADDED), "squares": FLAG}

MEASURES = ("users", "values")  #: What is counted: see `Release`.

# The same, perhaps none; of a person the most groups; and what is counted.
_GROUPS = {
    "numbers": whole_number(0, MOST_ADDED),
    "squares": FLAG,
    "groups": whole_number(1, LARGEST_ROWS),
    "measure": one_of(*MEASURES),
}

_VERSIONS = {1: _FIELDS, VERSION: {**_FIELDS, "reproducible": FLAG}}
_VERSIONS[OF_PERSONS] = {**_VERSIONS[VERSION], **_PERSON}
_VERSIONS[OF_NUMBERS] = {**_VERSIONS[OF_PERSONS], **_SUMS}
_VERSIONS[OF_GROUPS] = {**_VERSIONS[OF_PERSONS], **_GROUPS}

Releasing: TypeAlias = CentralMechanism | MatrixMechanism  #: What releases a histogram.

# Noise takes no number beyond it, but with a probability below exp(-2^15).
_LARGEST_NUMBER = 1 << 62


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """The noisy numbers that a curator published of a table, once, and what they are.

    Everything in it is public. `Release.draw` makes it.

    Parameters
    ----------
    schema : Schema
        Of the attributes that were counted.
    mechanism : CentralMechanism or MatrixMechanism
        `CentralFlat`, `Hierarchy`, `Wavelet` or `MatrixMechanism`, over the schema's items. An
        epsilon is kept as a Fraction, and budgets that a search found as the shares that it found.
    levels : sequence of numpy.ndarray of int64
        What `CentralMechanism.noisy_levels` gave, or, alone, `MatrixMechanism.noisy_numbers`;
        read-only.
    reproducible : bool, default False
        Whether the draws were seeded: they then protect nobody from who knows the seed.
    rows : int, default 0
        The most rows of a person, where `RowsOfPersons` chose them: the mechanism promises its part
        for one row, as `for_each_row` gives it, and the release the whole. 0: every row is a user.
    delta : Fraction, optional
        Of what is promised to a person with several rows, if the mechanism's promise is a `ZCDP` of
        less.
    sums : GroupedSums, optional
        Of a release of sums and means of numbers: of this schema.
    groups : int, default 1
        Of how many groups the rows of a person are at most, with as many rows in each: combinations
        of the groups of ``sums``, or cells, each measured apart from others. Then Gaussian noise is
        in proportion to ``rows / groups**0.5``.
    measure : {"users", "values"}, default "users"
        What is counted: "values" of the different values of an attribute.

    Raises
    ------
    ValueError
        Parts that do not belong together.
    TypeError
        A mechanism of another class.
    """

    schema: Schema
    mechanism: Releasing
    levels: Sequence[Integers]
    reproducible: bool = False
    rows: int = 0
    delta: Fraction | None = None
    sums: GroupedSums | None = None
    groups: int = 1
    measure: str = "users"

    def __post_init__(self) -> None:
        if self.sums is not None and self.sums.schema != self.schema:
            raise ValueError("the sums are of other attributes than the schema has")
        if self.measure not in MEASURES:
            raise ValueError(f"measure must be {listed(MEASURES)}, got {shown(self.measure)}")
        mechanism = _settled(_cells_of(self.schema, self.sums), self.mechanism)
        if checked_groups(self.groups, self.rows) > 1:
            _require_apart(mechanism, len(self.schema if self.sums is None else self.sums.groups))
        given = [np.asarray(level) for level in self.levels]
        if [level.shape for level in given] != _shapes(mechanism) or any(
            level.dtype.kind != "i" for level in given
        ):
            raise ValueError("the numbers are not those that the mechanism releases")
        levels = tuple(level.astype(np.int64) for level in given)
        for level in levels:
            if ((level > _LARGEST_NUMBER) | (level < -_LARGEST_NUMBER)).any():
                raise ValueError("a number is too large for 2^52 users and their noise")
            level.setflags(write=False)
        set_fields(self, mechanism=mechanism, levels=levels)

    @classmethod
    def draw(
        cls,
        schema: Schema,
        mechanism: Releasing | AdaptiveMarginals,
        counts: npt.ArrayLike | MarginalCounts,
        rng: np.random.Generator | None = None,
        **told: Any,
    ) -> Release:
        """Add noise to a histogram, once.

        Every call costs what the mechanism promises again.

        Parameters
        ----------
        schema, mechanism : as of `Release`
            Such as what ``plan("curated-ranges", schema, epsilon=..)`` recommends. Of an
            `AdaptiveMarginals` the mechanism of a release is that of all numbers together.
        counts : array_like
            The histogram, from `count_cells`: as for `CentralMechanism.release`. For a
            `MatrixMechanism` of marginals a `MarginalCounts`, too, from `count_marginals` or of
            `GroupedSums`.
        rng : numpy.random.Generator, optional
            None for the operating system's randomness; a generator's results can be repeated, and
            are not private.
        **told : as of `Release`
            ``rows``, ``groups`` and ``delta`` of a table with several rows a person; ``sums``;
            ``measure``.

        Returns
        -------
        Release
            What may be published.

        Raises
        ------
        ValueError, TypeError, InvalidHistogram
            As for `Release` and `CentralMechanism.release`; nothing was drawn.
        """
        settled: Releasing
        cells = _cells_of(schema, told.get("sums"))
        if isinstance(mechanism, AdaptiveMarginals):
            _require_cells(cells, mechanism.sizes)
            settled, noisy = mechanism.measured(counts, rng)
            levels = [noisy]
        else:
            settled = _settled(cells, mechanism)
            if isinstance(settled, MatrixMechanism):
                levels = [settled.noisy_numbers(counts, rng)]
            elif isinstance(counts, MarginalCounts):
                raise InvalidHistogram(
                    f"{type(settled).__name__} releases a histogram of all cells"
                )
            else:
                levels = settled.noisy_levels(counts, rng)
        return cls(schema, settled, levels, rng is not None, **told)

    @cached_property
    def estimate(self) -> SurveyEstimate:
        """Answers in the schema's labels and units, as numbers of users; see `CentralEstimate`."""
        mechanism, levels = self.mechanism, list(self.levels)
        if isinstance(mechanism, MatrixMechanism):
            told: CentralEstimate = mechanism.estimate(levels[0])
        else:
            told = mechanism.estimate(levels)
        if self.sums is not None:
            return SumsEstimate(self.sums, told, self.rows)
        return ReleasedEstimate(self.schema, told, self.measure, self.rows)

    @property
    def promised(self) -> str:
        """What a release promises, and to whom, in few words."""
        change = max(self.rows, 1), self.groups
        unit = unit_of(self.rows, self.groups, "rows" if self.measure == "users" else "values")
        return f"{promised(self.mechanism, *change, self.delta)} for {unit}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that `load` reads, replacing it in one step or not at all.

        The numbers take 8 bytes each, so the length of the file tells nothing of the users.

        Parameters
        ----------
        path : str or os.PathLike
            Where; what is there is replaced.
        """
        version = OF_PERSONS if self.rows else VERSION
        if self.sums is not None:
            version = OF_NUMBERS
        if self.groups > 1 or self.measure != "users":
            version = OF_GROUPS
        told = {
            "rows": self.rows,
            "delta": _PERSON["delta"].write(self.delta),
            "numbers": 0 if self.sums is None else self.sums.numbers,
            "squares": self.sums is not None and self.sums.squares,
            "groups": self.groups,
            "measure": self.measure,
        }
        header = {
            "kind": KIND,
            "version": version,
            **_header(self.schema, self.mechanism),
            "reproducible": self.reproducible,
            **{name: told[name] for name in _VERSIONS[version] if name in told},
        }
        numbers = list(self.levels)
        if isinstance(self.mechanism, MatrixMechanism):
            numbers += strategy_numbers(self.mechanism)
        with replacing(path) as stream:
            write_sealed(stream, header, *(level.astype("<i8").tobytes() for level in numbers))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Release:
        """Read the release in a file; its mechanism is made and audited again.

        Parameters
        ----------
        path : str or os.PathLike
            What `save` wrote.

        Returns
        -------
        Release
            Equal to the one that was saved.

        Raises
        ------
        InvalidFile
            It is no release, is cut short or was changed, or says something else than what it
            holds: of the schema, of the mechanism, of its noise.
        """
        with opened(path) as stream:
            message = stream.read()
        with intact(path, "no release"):
            return _release_of(*unsealed(message, KIND, _VERSIONS))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        content, others = (
            (
                (release.schema, release.mechanism, release.reproducible),
                (release.rows, release.delta, release.sums),
                (release.groups, release.measure),
            )
            for release in (self, other)
        )
        return content == others and all(map(np.array_equal, self.levels, other.levels))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<Release of {listed(self.schema.names)} by {type(self.mechanism).__name__},"
            f" {self.promised}{', SEEDED' * self.reproducible}>"
        )


class ReleasedEstimate(SurveyEstimate):
    """The answers of a curator's release, in labels and units.

    Its synthetic rows are those of `fitted`, whose counts are never negative, where it has one: see
    `CentralEstimate.posterior`. So rows hold what the answers say, but for whole numbers of rows,
    and nobody where the answers are noise.
    """

    estimate: CentralEstimate

    def __init__(
        self, schema: Schema, estimate: CentralEstimate, measure: str, rows: int = 0
    ) -> None:
        several = measure == "users" and rows > 1
        super().__init__(schema, estimate, "rows" if several else measure)
        self._rows = rows

    def caveats(self, several: bool = False) -> tuple[str, ...]:
        own = super().caveats(several)
        if self.measure == "values":
            among = ", in several groups in each" if len(self.schema) > 1 else ""
            return (*own, f"Different values are counted{among}, and not users.")
        if self._rows == 1:
            only = (
                "Of each person one row is counted, drawn among those that the person has: numbers"
                " of rows are larger."
            )
            return (*own, only)
        if not self._rows:
            return own
        most = (
            f"Rows are counted, not people: of each person up to {self._rows} rows. Where people"
            " have more, the others are left out, and numbers of all rows are larger."
        )
        return (*own, most)

    def _deviations(self, confidence: float) -> float:
        return self.estimate.deviations(confidence)

    def fitted(self) -> SurveyEstimate:
        return self._fitted

    @cached_property
    def _fitted(self) -> SurveyEstimate:
        return SurveyEstimate(self.schema, self.estimate.posterior(self.schema), self.measure)

    def _sampler(self, name: str) -> Any:
        with suppress(NoPosterior):
            return getattr(self._fitted.estimate, name)
        return super()._sampler(name)


class SumsEstimate(ReleasedEstimate):
    """The answers of a release of numbers: how many users there are by groups, sums and means.

    Nothing else of the numbers is known but, where their policies keep these apart, how many are
    missing or outside.

    Attributes
    ----------
    numbers : tuple of str
        The attributes whose sums, means and perhaps variances were released.
    """

    def __init__(self, sums: GroupedSums, estimate: CentralEstimate, rows: int) -> None:
        super().__init__(sums.schema, estimate, "users", rows)
        self._sums, self.numbers = sums, sums.added

    @property
    def has_quantiles(self) -> bool:
        return False

    def _asked(self, where: Any) -> dict[int, Any]:
        given = by_place(where, self.schema.names)
        return {place: self._item(place, part) for place, part in given.items()}

    def _item(self, place: int, given: Any) -> Any:
        attribute = self.schema.attributes[place]
        if attribute.name not in self.numbers:
            return attribute.asked(given)
        extra = self._sums[attribute.name].extra
        if given not in extra:
            apart = f", and how many users are {listed(extra)}" if extra else ""
            raise InvalidQuestion(
                f"sums and means of {printable(attribute.name)} were released{apart}, but no ranges"
            )
        return self._sums.places + extra.index(given)

    def _weighted(
        self, attribute: str | None, where: Mapping[str, Any] | None
    ) -> tuple[Bins, WeightedCounts]:
        if attribute is None and len(self.numbers) == 1:
            (attribute,) = self.numbers
        place, _ = self._with_order(attribute)
        if (name := self.schema.names[place]) not in self.numbers:
            raise InvalidQuestion(f"users were grouped by {printable(name)}: it has no mean here")
        asked = {} if where is None else self._whole_bins(where, place)
        places = self._sums.of(name)
        users = WeightedCounts(self._of_items, asked, place, self._sums.places, self._deviations)
        return Bins(places.values, np.zeros(self._sums.places), places.squares), users

    def variance(
        self, attribute: str | None = None, where: Mapping[str, Any] | None = None
    ) -> Answer:
        if not self._sums.squares:
            raise InvalidQuestion("sums of squares were not released: there are no variances")
        return super().variance(attribute, where)

    def _places(self, attributes: Sequence[str] | None) -> list[int]:
        places = super()._places(self._sums.groups if attributes is None else attributes)
        number = next((n for p in places if (n := self.schema.names[p]) in self.numbers), None)
        if number is not None:
            raise InvalidQuestion(
                f"only sums and means of {printable(number)} were released: it has no bins"
            )
        return places

    def fitted(self) -> SurveyEstimate:
        raise InvalidQuestion("no model is fitted to sums and means")

    def _sampler(self, name: str) -> Any:
        raise InvalidQuestion("sums and means are no distribution that rows could be drawn from")


def promised(
    mechanism: Releasing, rows: int = 1, groups: int = 1, delta: Fraction | None = None
) -> str:
    """Say what a release promises, in few words: for a person with so many rows, or for a row."""
    if isinstance(mechanism, CentralMechanism):
        return f"epsilon {brief(rows * mechanism.given_epsilon)}"
    promise = mechanism.promise
    if isinstance(promise, ZCDP):
        rho = squared_change(rows, groups) * promise.rho
        if delta is None:
            return f"rho {brief(rho)}"
        return f"epsilon {brief(GaussianLoss(2 * rho).epsilon(delta))}, delta {brief(delta)}"
    if isinstance(promise, ApproximateDP):
        return f"epsilon {brief(promise.epsilon)}, delta {brief(promise.delta)}"
    return f"epsilon {brief(rows * promise.epsilon)}"


def load_release(path: str | os.PathLike[str]) -> Release | ReleasedQuantiles | ReleasedKeys:
    """Read what a curator has published, of any kind.

    Parameters
    ----------
    path : str or os.PathLike
        What ``save`` wrote.

    Returns
    -------
    Release, ReleasedQuantiles or ReleasedKeys
        Equal to the one that was saved.

    Raises
    ------
    InvalidFile
        As for their own `load`.
    """
    with opened(path) as stream:
        document = stream.read(1) == b"{"
    if not document:
        return Release.load(path)
    by_keys = format_of(path) == ReleasedKeys.form.name
    return ReleasedKeys.load(path) if by_keys else ReleasedQuantiles.load(path)


def _settled(cells: tuple[int, ...], mechanism: Releasing) -> Releasing:
    """Return the same mechanism, of nothing that another computer might compute otherwise."""
    # ValueError and TypeError for one that is not for these cells, or cannot be kept
    if type(mechanism) not in (*_MECHANISMS.values(), MatrixMechanism):
        raise TypeError(
            f"a mechanism is one of {listed([*_MECHANISMS, NAME])}, got a"
            f" {type(mechanism).__name__}"
        )
    _require_cells(cells, mechanism.sizes)
    if isinstance(mechanism, MatrixMechanism):
        return mechanism
    changes: dict[str, Any] = {}
    if mechanism.epsilon != mechanism.given_epsilon:
        changes["epsilon"] = mechanism.given_epsilon
    if isinstance(mechanism, Hierarchy) and mechanism.budget != mechanism.shares:
        changes["budget"] = mechanism.shares
    return replace(mechanism, **changes) if changes else mechanism


def _cells_of(schema: Schema, sums: GroupedSums | None) -> tuple[int, ...]:
    """The number of cells along each attribute of what is released."""
    return cells_along(schema, LARGEST_MARGINALS) if sums is None else sums.sizes


def _require_cells(sizes: tuple[int, ...], cells: tuple[int, ...]) -> None:
    if sizes != cells:
        raise ValueError(
            f"the schema has {shown(sizes)} items, and the mechanism is for {shown(cells)} cells"
        )


def _require_apart(mechanism: Releasing, groups: int) -> None:
    """Check that every number that is measured is of one combination of the first attributes."""
    views = getattr(getattr(mechanism, "strategy", None), "whole_weights", {})
    first = set(range(groups))
    if not views or any(not first <= set(view) for view in views):
        raise ValueError("groups of a person are for tables of all groups, and for nothing else")


def _shapes(mechanism: Releasing) -> list[tuple[int, ...]]:
    """Return the shapes of the levels; (0,) of one that is not asked."""
    if isinstance(mechanism, MatrixMechanism):
        return [(mechanism.strategy.rows,)]
    nobody = np.broadcast_to(np.zeros((), dtype=np.int64), mechanism.sizes)
    return [
        (0,) if noise is None else level.shape
        for level, noise in zip(mechanism.levels(nobody), mechanism.noise, strict=True)
    ]


def _content(mechanism: Releasing) -> dict[str, Any]:
    """A settled mechanism as JSON has it. Its shape is that of the schema."""
    if isinstance(mechanism, MatrixMechanism):
        return mechanism_content(mechanism)
    form = _TREE if isinstance(mechanism, Hierarchy) else _SIMPLE
    exact = {"epsilon": mechanism.given_epsilon, "budget": mechanism.shares}
    return form.write({**vars(mechanism), **exact, "name": type(mechanism).__name__})


def _header(schema: Schema, mechanism: Releasing) -> dict[str, Any]:
    """Return what a file says beside its numbers."""
    # The alpha of each level's noise, from the top; of Gaussian noise sigma^2
    alphas: list[Fraction | None]
    if isinstance(mechanism, MatrixMechanism):
        noise = mechanism.noise
        if isinstance(noise, GroupedNoise):
            alphas = list(noise.alphas)
        else:
            alphas = [noise.alpha if isinstance(noise, DiscreteLaplace) else noise.sigma2]
    else:
        alphas = [None if law is None else law.alpha for law in mechanism.noise]
    return {
        "schema": schema.content(),
        "mechanism": _content(mechanism),
        "alphas": _FIELDS["alphas"].write(alphas),
    }


def _release_of(header: dict[str, Any], body: memoryview) -> Release:
    schema = Schema.of_content(header["schema"])
    sums = None
    if header.get("numbers"):
        sums = GroupedSums(schema, header["numbers"], header["squares"])
    sizes = _cells_of(schema, sums)
    # Before anything is made of so many cells
    content = header["mechanism"]
    numbers = np.frombuffer(body[: len(body) // 8 * 8], dtype="<i8").astype(np.int64)
    by_matrix = content["name"] == NAME
    if len(body) % 8 or (math.prod(sizes) > len(numbers) and not by_matrix):
        raise ValueError(f"{len(body)} bytes are not the numbers of {shown(sizes)} cells")
    mechanism: Releasing
    if by_matrix:
        alphas = _FIELDS["alphas"].read(header["alphas"])
        mechanism, numbers = mechanism_of_content(content, sizes, numbers, *alphas[:1])
    else:
        stated = (_TREE if "budget" in content else _SIMPLE).read(content)
        mechanism = _MECHANISMS[stated.pop("name")](sizes, **stated)
    mechanism.audit().require()
    written = _header(schema, _settled(sizes, mechanism))
    require_same(written, {key: header[key] for key in written})
    shapes = _shapes(mechanism)
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    if ends[-1] != len(numbers):
        raise ValueError(f"{len(numbers)} numbers, and its mechanism releases {ends[-1]}")
    parts = np.split(numbers, ends[:-1])
    levels = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
    told = {name: header[name] for name in ("rows", "groups", "measure") if name in header}
    delta = _PERSON["delta"].read(header.get("delta"))
    seeded = header.get("reproducible", False)
    return Release(schema, mechanism, levels, seeded, delta=delta, sums=sums, **told)
