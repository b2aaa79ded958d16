"""Survey: a protocol and the schema of what it asks."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np

from frequency.core import Aggregate, Channel, Protocol, Relabelled, Reports, channel_of
from frequency.schema.attribute import ItemAttribute, Text
from frequency.schema.domain import Domain
from frequency.schema.estimate import SurveyEstimate
from frequency.schema.schema import Encoded, Schema
from mechdesign.base import listed, shown


class ClippedValues(UserWarning):
    """The warning that values outside of an attribute's were put into its first or last bin."""


@dataclass(frozen=True)
class SurveyChannel(Relabelled):
    """A channel whose reports and aggregates belong to a schema by its digest: see `Survey`."""

    digest: str

    @cached_property
    def parameters(self) -> dict[str, Any]:
        inner = self.inner.parameters
        ours = {"protocol": "Survey", "alpha": inner["alpha"], "schema": self.digest}
        return {**ours, "channel": inner}


@dataclass(frozen=True)
class Survey(Protocol):
    """A protocol and the schema of what it asks: users' values are rows of a table, with labels.

    Answers are in labels and units: see `SurveyEstimate`. Reports and aggregates belong to this
    schema; those of another are refused.

    Parameters
    ----------
    protocol : Channel or Protocol
        Of `frequency` or `rangeq`, over as many items as the schema has.
    schema : Schema
        Of the attributes that the protocol asks for, in its order: one for protocols over items,
        short text for those that list frequent strings, several for those over records.

    Raises
    ------
    ValueError
        A schema of other attributes.

    Examples
    --------
    >>> from frequency import GRR, Categorical
    >>> island = Categorical("island", ["Biscoe", "Dream", "Torgersen"], missing="item")
    >>> survey = Survey(GRR(island.size, epsilon=2.0), Schema([island]))
    >>> answers = {"island": ["Dream"] * 6_000 + ["Biscoe"] * 3_000 + [None] * 1_000}
    >>> reports = survey.privatize(answers, np.random.default_rng(1))
    >>> estimate = survey.estimate(survey.aggregate(reports))
    >>> round(estimate.answer({"island": ["Dream", "Biscoe"]}).value, 1)
    0.9
    """

    protocol: Any
    schema: Schema

    def __post_init__(self) -> None:
        channel_of(self.protocol)
        if not isinstance(self.schema, Schema):
            raise ValueError(f"schema must be a frequency.Schema, got {shown(self.schema)}")
        asked = wrapped(self.protocol)
        domain, universe = domain_of(self.protocol), universe_of(self.protocol)
        texts = [attribute for attribute in self.schema if isinstance(attribute, Text)]
        if domain is not None:
            fits = (domain.names, domain.sizes) == (self.schema.names, self.schema.sizes)
            what = f"records of {shown(dict(zip(domain.names, domain.sizes, strict=True)))}"
        elif universe is not None and universe.text:
            fits = len(texts) == 1 and 8 * texts[0].bytes == universe.bits
            what = f"texts of {universe.bits // 8} bytes"
        else:
            items = channel_of(asked).domain if universe is None else universe.size
            # Those that list frequent integers may have room for more
            fits = not texts and (
                self.schema.sizes[0] == items if universe is None else self.schema.sizes[0] <= items
            )
            what = f"one attribute of {items} items"
        fits = fits and (domain is not None or len(self.schema) == 1)
        if not fits:
            sizes = [f"{attribute.name}: {attribute.size}" for attribute in self.schema]
            raise ValueError(
                f"{type(self.protocol).__name__} asks for {what}; the schema has {listed(sizes)}"
            )

    @cached_property
    def channel(self) -> SurveyChannel:
        """The channel by which a user's items become a report."""
        inner = channel_of(self.protocol)
        return SurveyChannel(inner.domain, inner.epsilon, inner, self.schema.digest)

    @property
    def takes(self) -> dict[str, Any]:
        inner = {key: value for key, value in self.protocol.takes.items() if key != "none"}
        attributes = [attribute.client_values for attribute in self.schema]
        return {"kind": "schema", "attributes": attributes, "as": inner}

    def items_of(self, values: Any) -> Any:
        return self.inner_items(self.schema.encode(values))

    def inner_items(self, encoded: Encoded) -> Any:
        """Return encoded rows as the channel takes them.

        Parameters
        ----------
        encoded : Encoded
            By the schema.

        Returns
        -------
        numpy.ndarray
            Of as many users as report.
        """
        columns = encoded.columns
        values = columns[0] if domain_of(self.protocol) is None else np.stack(columns, axis=1)
        return values if isinstance(self.protocol, Channel) else self.protocol.items_of(values)

    def privatize(
        self,
        table: Any,
        rng: np.random.Generator | None = None,
        tally: Counter[str] | None = None,
    ) -> Reports:
        """Return a private report for each user who has one to send.

        Parameters
        ----------
        table : DataFrame or mapping
            One row a user: see `Schema.encode`.
        rng : numpy.random.Generator, optional
            See `Channel.privatize`.
        tally : collections.Counter, optional
            Counts the clipped values by their attribute, and under "" the users who do not report.
            None: a warning tells of clipped values.

        Returns
        -------
        structured numpy.ndarray
            Shape (users who report,), of ``report_dtype``.

        Raises
        ------
        InvalidCell, UnknownColumn
            The first thing wrong with the table; nothing has been drawn.
        """
        encoded = self.schema.encode(table)
        if tally is not None:
            tally.update(encoded.clipped)
            tally[""] += encoded.skipped
        elif encoded.clipped:
            said = listed(f"{count} of {name}" for name, count in encoded.clipped.items())
            warnings.warn(
                f"values outside were put into the first or last bin: {said}",
                ClippedValues,
                stacklevel=2,
            )
        return self.channel.privatize(self.inner_items(encoded), rng)

    def estimate(self, aggregate: Aggregate) -> SurveyEstimate:
        """Return estimates in labels and units.

        Parameters
        ----------
        aggregate : Aggregate
            Of this survey's reports.

        Returns
        -------
        SurveyEstimate
            Of the protocol's estimate; of protocols that list frequent items, of that list.

        Raises
        ------
        IncompatibleAggregate
            The aggregate is of another protocol or schema.
        """
        inner = self.channel.inner_aggregate(self.channel.require_own(aggregate))
        lists = universe_of(self.protocol) is not None
        answers = self.protocol.find if lists else self.protocol.estimate
        # Those that smooth are told which items are no neighbours of the others
        attribute = self.schema.attributes[0]
        options = {}
        if isinstance(attribute, ItemAttribute) and "apart" in signature(answers).parameters:
            options["apart"] = len(attribute.extra)
        return SurveyEstimate(self.schema, answers(inner, **options))


def wrapped(protocol: Any) -> Any:
    """Return what a protocol of few bits is made around; any other one itself."""
    return getattr(protocol, "inner", protocol)


def universe_of(protocol: Any) -> Any:
    """The `frequency.heavy` universe of which a protocol lists items; None if it lists none."""
    return getattr(wrapped(protocol), "universe", None)


def domain_of(protocol: Any) -> Domain | None:
    """The attributes of the records that a protocol takes; None if it takes items."""
    asked = wrapped(protocol)
    candidates = (getattr(asked, name, None) for name in ("domain", "attributes"))
    return next((domain for domain in candidates if isinstance(domain, Domain)), None)
