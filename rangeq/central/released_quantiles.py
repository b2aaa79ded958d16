"""ReleasedQuantiles: the quantiles that a curator has published, as an object and as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from frequency.schema import Numeric, Ordered, Schema
from mechdesign import Privacy
from mechdesign.base import (
    ANYTHING,
    FLAG,
    Document,
    Format,
    aligned,
    brief,
    fraction,
    list_of,
    listed,
    one_of,
    printable,
    set_fields,
    shown,
    whole,
    whole_number,
)
from rangeq.central.inputs import STORED_NUMBER, histogram
from rangeq.central.persons import LARGEST_ROWS, unit_of
from rangeq.central.quantile_release import QuantileRelease, TreeQuantiles

#: What releases quantiles and nothing else.
QuantileMechanism: TypeAlias = QuantileRelease | TreeQuantiles

_MECHANISMS: dict[str, type[QuantileMechanism]] = {
    kind.__name__: kind for kind in (QuantileRelease, TreeQuantiles)
}

# Of version 1, which does not say whether draws were seeded.
_FIELDS = {
    "schema": replace(ANYTHING, read=Schema.of_content, write=Schema.content),
    "mechanism": one_of(*_MECHANISMS),
    "q": list_of(STORED_NUMBER),
    "epsilon": STORED_NUMBER,
    "alpha": STORED_NUMBER,
    "bins": list_of(whole_number(0)),
}


@dataclass(frozen=True)
class ReleasedQuantiles(Document):
    """Quantiles of one attribute, published once; of users who have a value.

    They are bins: within its bin a quantile is not known. Nothing else was released, so there are
    no intervals, and no other quantiles.

    Parameters
    ----------
    schema : Schema
        Of one ordered attribute.
    mechanism : QuantileRelease or TreeQuantiles
        Over the attribute's bins. Its epsilon is kept as a Fraction.
    bins : sequence of int
        What it released: one for each of ``mechanism.q``.
    reproducible : bool, default False
        Whether the draws were seeded: they then protect nobody from who knows the seed.
    rows : int, default 0
        The most rows of a person, where `RowsOfPersons` chose them, each of which has its part of
        epsilon; 0: every row is a user.

    Raises
    ------
    ValueError
        Parts that do not belong together.
    TypeError
        A mechanism of another class.
    """

    form: ClassVar[Format] = Format(
        "mechdesign.quantiles",
        {
            1: _FIELDS,
            2: {**_FIELDS, "reproducible": FLAG},
            3: {**_FIELDS, "reproducible": FLAG, "rows": whole_number(0, LARGEST_ROWS)},
        },
    )

    schema: Schema
    mechanism: QuantileMechanism
    bins: Sequence[int]
    reproducible: bool = False
    rows: int = 0

    def __post_init__(self) -> None:
        set_fields(self, rows=whole(self.rows, "rows", 0, LARGEST_ROWS))
        if type(self.mechanism) not in _MECHANISMS.values():
            kind = type(self.mechanism).__name__
            raise TypeError(f"a mechanism is one of {listed(_MECHANISMS)}, got a {kind}")
        epsilon = fraction(self.mechanism.epsilon, "epsilon")
        set_fields(self, mechanism=replace(self.mechanism, epsilon=epsilon))
        attribute = ordered_attribute(self.schema)
        if attribute.bins != self.mechanism.domain:
            raise ValueError(
                f"the attribute has {attribute.bins} bins, and the mechanism is for"
                f" {self.mechanism.domain}"
            )
        if len(self.bins) != len(self.q):
            raise ValueError(f"{len(self.q)} quantiles are so many bins, got {shown(self.bins)}")
        bins = tuple(
            whole(number, "a quantile's bin", 0, attribute.bins - 1) for number in self.bins
        )
        set_fields(self, bins=bins)

    @classmethod
    def draw(
        cls,
        schema: Schema,
        mechanism: QuantileMechanism,
        counts: npt.ArrayLike,
        rng: np.random.Generator | None = None,
        rows: int = 0,
    ) -> ReleasedQuantiles:
        """Draw the quantiles of a histogram, once.

        Every call costs the mechanism's epsilon again. It takes some 24 bytes for each user.

        Parameters
        ----------
        schema, mechanism : as of `ReleasedQuantiles`
            Such as what ``plan("curated-quantiles", schema, epsilon=.., q=..)`` recommends.
        counts : array_like
            The histogram, from `count_cells`. Users without a value are left out, and in no bin.
        rng : numpy.random.Generator, optional
            None for the operating system's randomness; a generator's results can be repeated, and
            are not private.
        rows : int, default 0
            As of `ReleasedQuantiles`.

        Returns
        -------
        ReleasedQuantiles
            What may be published.

        Raises
        ------
        ValueError, TypeError, InvalidHistogram
            As for `ReleasedQuantiles` and `CentralMechanism.release`; nothing was drawn.
        """
        cls(schema, mechanism, [0] * len(mechanism.q))  # refuses what does not belong together
        exactly = histogram(counts, schema.sizes)[: mechanism.domain]
        users = np.repeat(np.arange(mechanism.domain, dtype=np.int32), exactly)
        bins = mechanism.release(users, rng).tolist()
        return cls(schema, mechanism, bins, rng is not None, rows)

    @property
    def promised(self) -> str:
        """What a release promises, and to whom, in few words."""
        epsilon = max(self.rows, 1) * fraction(self.mechanism.epsilon, "epsilon")
        return f"epsilon {brief(epsilon)} for {unit_of(self.rows)}"

    @property
    def attribute(self) -> Ordered:
        """The attribute that the quantiles are of."""
        return ordered_attribute(self.schema)

    @property
    def q(self) -> tuple[Fraction, ...]:
        """The quantiles' fractions of the users, in the order in which they were asked for."""
        return self.mechanism.q

    @property
    def values(self) -> npt.NDArray[Any]:
        """The middle of each quantile's bin, in the attribute's unit."""
        return self._values(0.5)

    @property
    def bounds(self) -> Numeric:
        """The attribute with the least and the largest released value as bounds, which clip.

        Where nobody knows in what bounds most numbers are, a quantile such as 0.01 and one such as
        0.99 are released first, and sums and means within these.

        Raises
        ------
        ValueError
            The attribute is not numeric, or both are the same.
        """
        attribute = self.attribute
        if not isinstance(attribute, Numeric):
            raise ValueError(f"{printable(attribute.name)} is not numeric: it has no sums")
        first, last = self.ends
        bounds = {"low": first.min().item(), "high": last.max().item()}
        return replace(
            attribute, edges=None, bins=1, spacing="equal", outside="clip", heaps=(), **bounds
        )

    @property
    def ends(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The first and the last value of each quantile's bin."""
        return self._values(0.0), self._values(1.0)

    def _values(self, part: float) -> npt.NDArray[Any]:
        return self.attribute.values_in(np.array(self.bins), np.array(part))

    def columns(self) -> dict[str, list[Any]]:
        """Return the quantiles as columns of a table.

        Returns
        -------
        dict of str to list
            "quantile", "value", and "first" and "last" of its bin.
        """
        names = ("value", "first", "last")
        pairs = zip(names, (self.values, *self.ends), strict=True)
        return {
            "quantile": [*map(float, self.q)],
            **{name: column.tolist() for name, column in pairs},
        }

    def content(self) -> dict[str, Any]:
        epsilon = fraction(self.mechanism.epsilon, "epsilon")
        return {
            "schema": self.schema,
            "mechanism": type(self.mechanism).__name__,
            "q": self.q,
            "epsilon": epsilon,
            "alpha": Privacy.from_epsilon(epsilon).alpha,
            "bins": self.bins,
            "reproducible": self.reproducible,
            "rows": self.rows,
        }

    @classmethod
    def of_content(cls, content: dict[str, Any], where: str) -> ReleasedQuantiles:
        stated = cls.form.read(content)
        schema = stated["schema"]
        domain = ordered_attribute(schema).bins
        mechanism = _MECHANISMS[stated["mechanism"]](domain, stated["q"], stated["epsilon"])
        mechanism.audit().require()
        seeded, rows = stated.get("reproducible", False), stated.get("rows", 0)
        result = cls(schema, mechanism, stated["bins"], seeded, rows)
        cls.form.require_same(result.content(), content)
        return result

    def __str__(self) -> str:
        unit = self.attribute.unit
        head = ["quantile", f"{self.schema.names[0]}{f' ({unit})' if unit else ''}"]
        rows = [
            [brief(number), self.attribute.label(item)]
            for number, item in zip(self.q, self.bins, strict=True)
        ]
        return "\n".join(aligned([head, *rows]))


def ordered_attribute(schema: Schema) -> Ordered:
    """The only attribute of a schema, whose values have an order."""
    if len(schema) != 1 or not isinstance(schema.attributes[0], Ordered):
        raise ValueError(f"quantiles are of one ordered attribute, got {listed(schema.names)}")
    return schema.attributes[0]
