"""ReleasedKeys: the keys of a column that a curator has published, as an object and as a file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.core import Answer, ConfidenceInterval
from frequency.exceptions import InvalidQuestion
from frequency.schema import Categorical, Encoded, Schema, SurveyEstimate, Text
from frequency.schema.attribute import ItemAttribute
from frequency.schema.column import Column
from mechdesign.base import (
    ANYTHING,
    FLAG,
    TEXT,
    Document,
    Floats,
    Format,
    Integers,
    brief,
    fraction,
    list_of,
    one_of,
    printable,
    set_fields,
    shown,
    whole_number,
)
from mechdesign.exceptions import MechanismError
from rangeq.central.inputs import STORED_NUMBER, cells_along
from rangeq.central.keys import MOST_KEYS, RULES, KeyRule
from rangeq.central.persons import RowsOfPersons, unit_of

_MOST_NUMBER = 1 << 62

_FIELDS = {
    "schema": ANYTHING,
    "rule": one_of(*RULES),
    "epsilon": STORED_NUMBER,
    "delta": STORED_NUMBER,
    "keys": whole_number(1, MOST_KEYS),
    "least": whole_number(1, _MOST_NUMBER),
    "labels": list_of(TEXT),
    "numbers": list_of(whole_number(1, _MOST_NUMBER)),
    "persons": FLAG,
    "reproducible": FLAG,
}


def count_keys(schema: Schema, tables: Iterable[Any]) -> Counter[str]:
    """Return how many users each key has: exact, and private.

    Parameters
    ----------
    schema : Schema
        Of one `Text` attribute.
    tables : iterable of DataFrame, mapping or Encoded
        Parts of the table, as `Schema.encode` takes or gives them. A row is a user with one key.

    Returns
    -------
    collections.Counter of str
        Users by their keys; a value that is missing is the key "" where the schema keeps it.

    Raises
    ------
    ValueError
        Another schema.
    InvalidCell
        The first value that no policy takes.
    """
    text_of(schema)
    counts: Counter[str] = Counter()
    for table in tables:
        encoded = table if isinstance(table, Encoded) else schema.encode(table)
        keys, numbers = np.unique(encoded.columns[0].astype(str), return_counts=True)
        counts.update(dict(zip(keys.tolist(), numbers.tolist(), strict=True)))
    return counts


class KeysOfPersons:
    """The keys of persons, of each so many at most, whatever rows they are in.

    Which count is drawn as by `RowsOfPersons`: at random, and not from the data of others.

    Parameters
    ----------
    schema : Schema
        Of one `Text` attribute.
    most : int
        The most keys of a person.
    rng : numpy.random.Generator, optional
        As of `RowsOfPersons`.

    Raises
    ------
    ValueError, TypeError
        Another schema, or no such number.
    """

    def __init__(self, schema: Schema, most: int, rng: np.random.Generator | None = None) -> None:
        text_of(schema)
        self._schema, self._codes = schema, dict[str, int]()
        self._rows = RowsOfPersons(most, rng, groups=most, by=1)

    def add(self, persons: Any, table: Any) -> None:
        """Take rows of a table.

        Parameters
        ----------
        persons : Column
            What names the person of each row; rows without are left out.
        table : DataFrame or mapping
            The block.
        """
        encoded = self._schema.encode(table)
        items = _coded(encoded.columns[0], self._codes)
        self._rows.add(persons, encoded._replace(columns=(items,)))

    def counts(self) -> dict[str, int]:
        """Return how many persons each key has that count: see `count_keys`.

        Returns
        -------
        dict of str to int
            Persons by keys.
        """
        numbers = np.zeros(len(self._codes), dtype=np.int64)
        for kept in self._rows.kept():
            numbers += np.bincount(kept.columns[0], minlength=len(numbers))
        each = zip(self._codes, numbers.tolist(), strict=True)
        return {key: number for key, number in each if number}


def _coded(texts: npt.NDArray[Any], codes: dict[str, int]) -> Integers:
    """Numbers in the place of texts, those that are new in the order in which they are met."""
    found, places = np.unique(texts.astype(str), return_inverse=True)
    numbers = [codes.setdefault(text, len(codes)) for text in found.tolist()]
    return np.array(numbers, dtype=np.int64)[places]


class DistinctValues:
    """How many different values of an attribute there are, by groups: exact, and private.

    A row adds one value at most. Of persons with several rows so many pairs of a group and a value
    count, drawn as by `RowsOfPersons`, and each adds one at most, all perhaps in the same group.

    Parameters
    ----------
    schema : Schema
        The attributes of groups, if any, and last the one whose values are told apart: texts, or
        items that are single values. Missing values, and those outside, are none.
    most : int, default 0
        The most pairs of a person; 0: every row is a user.
    rng : numpy.random.Generator, optional
        As of `RowsOfPersons`.

    Raises
    ------
    ValueError, TypeError
        Another schema, or no such number.
    """

    def __init__(
        self, schema: Schema, most: int = 0, rng: np.random.Generator | None = None
    ) -> None:
        *groups, last = schema
        if isinstance(last, ItemAttribute) and not getattr(last, "single", True):
            raise ValueError(f"{printable(last.name)} has bins, which are no different values")
        told = Categorical(last.name, ["different values"], title=last.title)
        #: Of what `counts` has: the groups, and an attribute with one label for the values.
        self.schema = Schema([*groups, told])
        self._sizes = cells_along(self.schema)
        self._encode, self._last = schema.encode, last
        self._codes, self._found = dict[str, int](), np.zeros((0, 2), dtype=np.int64)
        self._rows = RowsOfPersons(most, rng, groups=most, by=2) if most else None

    def add(self, table: Any, persons: Column | None = None) -> None:
        """Take rows of a table.

        Parameters
        ----------
        table : DataFrame, mapping or Encoded
            The block.
        persons : Column, optional
            What names the person of each row, if persons may have several.
        """
        encoded = table if isinstance(table, Encoded) else self._encode(table)
        *groups, values = encoded.columns
        if not isinstance(self._last, ItemAttribute):
            values = np.where(values.astype(str) == "", -1, _coded(values, self._codes))
        else:
            values = np.where(values < self._last.bins, values, -1)
        cells = np.ravel_multi_index(groups, self._sizes[:-1]) if groups else 0 * values
        pairs = np.column_stack([cells, values])
        told = values >= 0
        pairs = pairs[told]
        if self._rows is None:
            self._unite(pairs)
        elif persons is not None:
            # Rows without a value take no place among those of a person that count
            reports = np.ones(len(told), dtype=bool) if encoded.reports is None else encoded.reports
            reports = reports.copy()
            reports[reports] = told
            self._rows.add(persons, Encoded(tuple(pairs.T), {}, 0, reports))

    def _unite(self, pairs: Integers) -> None:
        """Add pairs to those that are known."""
        self._found = np.unique(np.concatenate([self._found, pairs]), axis=0)

    def counts(self) -> Integers:
        """Return the numbers of different values.

        Returns
        -------
        numpy.ndarray of int64
            Shape ``schema.sizes``.
        """
        for kept in self._rows.kept() if self._rows is not None else ():
            self._unite(np.column_stack(kept.columns))
        found = np.bincount(self._found[:, 0], minlength=math.prod(self._sizes))
        return found.reshape(self._sizes)


class KeysEstimate:
    """The numbers of users of the keys that were kept: what `SurveyEstimate` asks.

    Attributes
    ----------
    items : numpy.ndarray of str
        The keys, those of the most users first.
    """

    def __init__(self, released: ReleasedKeys) -> None:
        self._released = released
        self.items: npt.NDArray[Any] = np.array(released.labels, dtype=object)
        self._numbers = np.array(released.numbers, dtype=np.int64)
        self._values: Floats = released.rule.estimates(self._numbers)
        self._places = {label: k for k, label in enumerate(released.labels)}

    @property
    def n(self) -> float:
        """The users of all keys that were kept."""
        return float(self._values.sum())

    @property
    def statement(self) -> str:
        """What may have been left out, in words."""
        rule = self._released.rule
        least, most = rule.from_users(0.05), rule.from_users(0.95)
        fewer = f", of fewer than {least} of less than 5 %" if least > 1 else ""
        return (
            f"Keys of {most} users or more are kept with a probability of 95 % or more{fewer}."
            " Other keys and their users are left out: how many is not said. Of keys that were"
            " hardly kept numbers are too large on average."
        )

    def answer(self, where: Any) -> Answer:
        """Return the number of users of a key, or of many.

        Parameters
        ----------
        where : str, numpy.ndarray or mapping
            A key that was kept, an array of them, or a mapping of 0 to either.

        Returns
        -------
        Answer
            Users; the variance is that of the noise.

        Raises
        ------
        InvalidQuestion
            A key that was not kept.
        """
        asked = where[0] if isinstance(where, Mapping) and set(where) == {0} else where
        given = asked if isinstance(asked, np.ndarray) else np.array(asked, dtype=object)
        wanted = given.ravel().tolist()
        unknown = next((key for key in wanted if key not in self._places), None)
        if unknown is not None:
            raise InvalidQuestion(f"the key {shown(unknown)} is not among those that were kept")
        places = np.array([self._places[key] for key in wanted], dtype=np.int64)
        rule, shape = self._released.rule, given.shape

        def interval(confidence: float) -> ConfidenceInterval[Any]:
            ends = rule.interval(self._numbers[places], confidence)
            return ConfidenceInterval(*(end.reshape(shape) for end in ends))

        variance = np.full(shape, rule.deviation**2)
        return Answer(self._values[places].reshape(shape), variance, _interval=interval)


@dataclass(frozen=True)
class ReleasedKeys(Document):
    """Keys of a column that nobody listed, with noisy numbers of their users, published once.

    Which other keys there are was not released, nor how many.

    Parameters
    ----------
    schema : Schema
        Of one `Text` attribute.
    rule : KeyRule
        `OptimalKeys` or `GaussianKeys`.
    labels : sequence of str
        The keys that were kept: those of the largest numbers first, equal ones by their label.
    numbers : sequence of int
        Theirs, as `KeyRule.release` gives them.
    persons : bool, default False
        Whether the promise is for a person with up to ``rule.keys`` keys; False: for a row.
    reproducible : bool, default False
        Whether the draws were seeded: they then protect nobody from who knows the seed.

    Raises
    ------
    ValueError
        Parts that do not belong together.
    """

    form: ClassVar[Format] = Format("mechdesign.keys", {1: _FIELDS})

    schema: Schema
    rule: KeyRule
    labels: Sequence[str]
    numbers: Sequence[int]
    persons: bool = False
    reproducible: bool = False

    def __post_init__(self) -> None:
        attribute = text_of(self.schema)
        if type(self.rule) not in RULES.values():
            raise TypeError(f"a rule is OptimalKeys or GaussianKeys, got {shown(self.rule)}")
        if self.rule.keys > 1 and not self.persons:
            raise ValueError("a row has one key")
        labels, numbers = tuple(self.labels), tuple(self.numbers)
        if len(labels) != len(numbers):
            raise ValueError(f"{len(labels)} keys have so many numbers, got {len(numbers)}")
        order = [(-number, label) for number, label in zip(numbers, labels, strict=True)]
        if sorted(order) != order or len(set(labels)) < len(labels):
            raise ValueError("keys are each there once, those of the largest numbers first")
        if any(not self.rule.least <= number <= _MOST_NUMBER for number in numbers):
            raise ValueError(f"numbers are at least {self.rule.least}")
        if any(len(label.encode()) > attribute.bytes or "\0" in label for label in labels):
            raise ValueError(f"a key is {attribute.values}")
        set_fields(self, labels=labels, numbers=numbers)

    @classmethod
    def draw(
        cls,
        schema: Schema,
        rule: KeyRule,
        counts: Mapping[str, int],
        rng: np.random.Generator | None = None,
        *,
        persons: bool = False,
    ) -> ReleasedKeys:
        """Decide which keys are kept, and draw their numbers, once.

        Every call costs what the rule promises again.

        Parameters
        ----------
        schema, rule, persons : as of `ReleasedKeys`
            Such as the first one of `key_rules`.
        counts : mapping of str to int
            From `count_keys`, or `KeysOfPersons`.
        rng : numpy.random.Generator, optional
            None for the operating system's randomness; a generator's results can be repeated, and
            are not private.

        Returns
        -------
        ReleasedKeys
            What may be published.

        Raises
        ------
        ValueError, TypeError, InvalidHistogram, MechanismError
            As for `ReleasedKeys` and `KeyRule.release`; nothing was drawn.
        """
        cls(schema, rule, (), (), persons)  # refuses what does not belong together
        keys = sorted(counts)  # the order of a table's rows is in nothing
        kept, numbers = rule.release(np.array([counts[key] for key in keys], dtype=np.int64), rng)
        found = [key for key, is_kept in zip(keys, kept.tolist(), strict=True) if is_kept]
        order = sorted(zip((-numbers).tolist(), found, strict=True))
        labels, sizes = [label for _, label in order], [-number for number, _ in order]
        return cls(schema, rule, labels, sizes, persons, rng is not None)

    @property
    def estimate(self) -> SurveyEstimate:
        """Answers about the keys that were kept, as numbers of users."""
        return SurveyEstimate(self.schema, KeysEstimate(self), "users")

    @property
    def categorical(self) -> Categorical:
        """The attribute with the keys as its labels, and all other texts as another answer.

        With it tables are released by keys that nobody listed: sums, or together with others.

        Raises
        ------
        ValueError
            No key was kept.
        """
        text = text_of(self.schema)
        return Categorical(
            text.name,
            sorted(filter(None, self.labels)),
            unit=text.unit,
            title=text.title,
            missing=text.missing,
            missing_codes=text.missing_codes,
            outside="item",
        )

    @property
    def promised(self) -> str:
        """What a release promises, and to whom, in few words."""
        rule = self.rule
        unit = unit_of(0)
        if self.persons:
            unit = f"each person, with up to {rule.keys} key{'s' * (rule.keys > 1)}"
        return f"epsilon {brief(rule.epsilon)}, delta {brief(rule.delta)} for {unit}"

    def content(self) -> dict[str, Any]:
        rule = self.rule
        return {
            "schema": self.schema.content(),
            "rule": rule.kind,
            "epsilon": fraction(rule.epsilon, "epsilon"),
            "delta": fraction(rule.delta, "delta"),
            "keys": rule.keys,
            "least": rule.least,
            "labels": self.labels,
            "numbers": self.numbers,
            "persons": self.persons,
            "reproducible": self.reproducible,
        }

    @classmethod
    def of_content(cls, content: dict[str, Any], where: str) -> ReleasedKeys:
        stated = cls.form.read(content)
        rule: Any = RULES[stated["rule"]]
        rule = rule(stated["epsilon"], stated["delta"], stated["keys"])
        if not rule.audit():
            raise MechanismError(f"{where}: the rule does not keep what it promises")
        result = cls(
            Schema.of_content(stated["schema"]),
            rule,
            stated["labels"],
            stated["numbers"],
            stated["persons"],
            stated["reproducible"],
        )
        cls.form.require_same(result.content(), content)
        return result

    def __repr__(self) -> str:
        return f"<{len(self.labels)} keys of {self.schema.names[0]}, {self.promised}>"


def text_of(schema: Schema) -> Text:
    """The only attribute of a schema, whose values are texts that nobody listed."""
    if len(schema) != 1 or not isinstance(attribute := schema.attributes[0], Text):
        names = ", ".join(map(printable, schema.names))
        raise ValueError(f"keys are of one attribute of the kind text, got {names}")
    return attribute
