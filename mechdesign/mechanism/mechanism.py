"""Mechanism: a table with its claim and its certificate, to be released, saved and loaded."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mechdesign.approximate_privacy import Promise
from mechdesign.base import (
    AS_IT_IS,
    ProgressMeter,
    Rational,
    ReadOptions,
    comma_separated,
    count_in,
    opened_rows,
    replacing,
    set_fields,
)
from mechdesign.exceptions import InvalidCount, NotSquare
from mechdesign.mechanism import files
from mechdesign.mechanism.closed_form import Law
from mechdesign.mechanism.table import Table
from mechdesign.mechanism.values import Bands, CountPairs, Counts, Values, numbers_of
from mechdesign.optimisation.certificate import Certificate
from mechdesign.privacy import Privacy
from mechdesign.properties import SEVEN, Property, PropertyLike, resolve

if TYPE_CHECKING:
    from opendp.mod import Measurement


class Mechanism(Table):
    """A randomised answer to a count, as an exact table with a claim of privacy.

    The table is ``P[i, j] = Pr[output i | input j]``, may be rectangular, and its columns sum to
    exactly one. Immutable; equal when the tables and the claims are equal. Constructing one does
    not check the claim: `audit` does, and `release` refuses when it fails.

    Parameters
    ----------
    table : iterable of iterable of Fraction, int, str or Decimal
        Shape (outputs, inputs): rows are outputs, columns are inputs. Entries are exact rationals;
        floats are refused (`InexactNumber`).
    privacy : Privacy or ApproximatePrivacy
        The claim.
    certificate : Certificate, optional
        A proof of optimality to keep with the table, see `mechdesign.optimisation.certificate`. Not
        part of equality.
    outputs, inputs : Values, optional
        What rows and columns stand for; counts from 0 unless given. Inputs are `Counts` from 0, or
        `CountPairs`, whose neighbours ``privacy`` must list.

    Raises
    ------
    InvalidMechanism
        A ragged or empty table, a negative entry, or a column that does not sum to one; the message
        names it. Or outputs and inputs that do not fit the table, or each other.

    Examples
    --------
    >>> m = Mechanism([["2/3", "1/3"], ["1/3", "2/3"]], Privacy(alpha="1/2"))
    >>> m.audit().ratio, m.audit().holds
    (Fraction(2, 1), True)
    """

    __slots__ = ("certificate",)

    certificate: Certificate | None

    def __init__(
        self,
        table: Iterable[Iterable[Rational]],
        privacy: Promise,
        certificate: Certificate | None = None,
        *,
        outputs: Values | None = None,
        inputs: Values | None = None,
    ) -> None:
        super().__init__(table, privacy, outputs=outputs, inputs=inputs)
        set_fields(self, certificate=certificate)

    @classmethod
    def from_weights(
        cls,
        weights: Sequence[Sequence[int]],
        denominator: int,
        privacy: Promise,
        certificate: Certificate | None = None,
        *,
        outputs: Values | None = None,
        inputs: Values | None = None,
    ) -> Mechanism:
        """Return the mechanism with the table ``weights[i][j] / denominator``, in lowest terms.

        Parameters
        ----------
        weights : sequence of sequence of int
            Integers of at least 0, shape (outputs, inputs); every column sums to ``denominator``.
        denominator : int
            An integer of at least 1.
        privacy : Privacy or ApproximatePrivacy
            The claim.
        certificate : Certificate, optional
            A proof of optimality to keep with the table, or None. It is not checked here.
        outputs, inputs : Values, optional
            What rows and columns stand for; counts from 0 unless given.

        Returns
        -------
        Mechanism

        Raises
        ------
        InvalidMechanism
            A ragged or empty table, a negative weight, a denominator below 1, or a column with
            another sum; the message names it.
        """
        mechanism = cls.__new__(cls)
        mechanism._set(weights, denominator, privacy, outputs, inputs)
        set_fields(mechanism, certificate=certificate)
        return mechanism

    @classmethod
    def from_law(
        cls, law: Law, privacy: Privacy, certificate: Certificate | None = None
    ) -> Mechanism:
        """Return the mechanism of a closed form, for any n, without a table.

        Parameters
        ----------
        law : Law
            The distributions of its outputs, see `mechdesign.mechanism.closed_form`; the functions
            of `mechdesign.named` make them.
        privacy : Privacy
            The claim, between adjacent counts; of a `UniformLaw` any.
        certificate : Certificate, optional
            A proof of optimality to keep with it, or None. It is not checked here.

        Returns
        -------
        Mechanism

        Raises
        ------
        ValueError
            Other neighbours.
        """
        mechanism = super().from_law(law, privacy)
        set_fields(mechanism, certificate=certificate)
        return mechanism

    def __reduce__(self) -> tuple[Any, ...]:
        if self.law is not None:
            return Mechanism.from_law, (self.law, self.promise, self.certificate)
        make = partial(Mechanism.from_weights, outputs=self.output_values, inputs=self.input_values)
        return make, (
            self.weights,
            self.denominator,
            self.promise,
            self.certificate,
        )

    def properties(self, *others: PropertyLike) -> dict[str, bool]:
        """Return whether each of the seven properties of thesis 6.4 holds, exactly, by short name.

        One that is not defined for such outputs and inputs does not hold.

        Parameters
        ----------
        *others : Property, type or str
            More properties, such as those of your own: by their text.

        Returns
        -------
        dict of str to bool
            In this order.
        """
        asked = [*SEVEN, *map(resolve, others)]
        return {item.text: self._has(item) for item in asked}

    def _has(self, item: Property) -> bool:
        try:
            return item.holds(self)
        except NotSquare:
            return False

    def release(
        self, counts: npt.ArrayLike, rng: np.random.Generator | None = None
    ) -> npt.NDArray[np.int64]:
        """Draw once for each true count, exactly distributed as the table says, without floats.

        Parameters
        ----------
        counts : array_like
            True counts: integers in 0 .. inputs-1, any shape; of pairs of counts with a last axis
            of length two.
        rng : numpy.random.Generator, optional
            None: randomness from the operating system. A Generator: reproducible, for experiments,
            *not* private against an adversary that knows its state.

        Returns
        -------
        numpy.ndarray of int64
            What ``output_values`` says of the outputs, of the same shape: counts, or pairs of
            counts; of bands their numbers.

        Raises
        ------
        PrivacyViolation
            The table does not keep the privacy it claims.
        InvalidCount
            Names the first bad count; nothing has been drawn.
        """
        self.audit().require()
        drawn = self.sampler.draw(numbers_of(self.input_values, counts), rng)
        return self.output_values.at(drawn)

    def to_opendp(self) -> Measurement:
        """The mechanism as a measurement of OpenDP, to be chained with what counts.

        Its input is an integer (``AtomDomain(T=i32)``, of closed forms above n = 64 i64, under the
        absolute distance). One below 0 or above the largest count is taken as that, since an error
        would reveal it; this brings no two integers farther apart. Its output is what `release`
        returns, of bands the number. Its privacy map gives the pure epsilon (``MaxDivergence``) for
        integers that differ by at most d: epsilon times `Privacy.steps`, rounded up.

        Needs the extra ``opendp``, and that its features ``contrib`` and ``honest-but-curious`` are
        enabled. Measurements need no polars; OpenDP 0.16 itself refuses tables of any release of
        polars but 1.36.1, polars 2 among them.

        Returns
        -------
        opendp.mod.Measurement
            With randomness from the operating system.

        Raises
        ------
        ImportError
            The package opendp is not installed.
        PrivacyViolation
            The table does not keep the privacy it claims.
        NotPure
            The table promises a delta, too.
        ValueError
            Privacy is not about the difference of two counts: inputs are pairs of counts, or the
            neighbours are listed or at distances of their own.
        """
        dp: Any = import_module("opendp.prelude")
        self.audit().require()
        if not isinstance(self.input_values, Counts):
            raise ValueError("a measurement of OpenDP is of one count, not of pairs of counts")
        self.privacy.steps(1)
        most, epsilon = self.inputs - 1, Fraction(self.privacy.epsilon)
        whole_type = int if self.closed is None else "i64"  # OpenDP's integers have 32 bits

        def loss(difference: int) -> float:
            exact_loss = epsilon * self.privacy.steps(min(difference, most))
            rounded = float(exact_loss)
            return rounded if rounded >= exact_loss else math.nextafter(rounded, math.inf)

        measurement: Measurement = dp.m.make_user_measurement(
            dp.atom_domain(T=whole_type),
            dp.absolute_distance(T=whole_type),
            dp.max_divergence(),
            lambda count: int(self.release(min(max(count, 0), most))),
            loss,
            TO=whole_type,
        )
        return measurement

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, replacing it in one step.

        ``.json`` is exact and can be loaded; ``.csv`` and ``.npz`` are float views.

        Raises
        ------
        PrivacyViolation
            The table does not keep the privacy it claims; nothing is written.
        ValueError
            Another suffix; or a JSON file that `load` would refuse, since it takes too long to
            check, or since the text of a property of the certificate stands for another property.
        """
        files.save(self, self.certificate, path)

    @staticmethod
    def load(path: str | os.PathLike[str], *, certificate: bool = True) -> Mechanism:
        """Read a JSON file and check it all again: digest, table, privacy, certificate.

        Parameters
        ----------
        path : str or os.PathLike
            A file that `save` wrote.
        certificate : bool, default True
            False: the certificate is not read, and the mechanism has none. The rest is checked as
            always. That is enough to release counts; it is faster, and needs no import of what
            defines the properties that the certificate names.

        Returns
        -------
        Mechanism

        Raises
        ------
        InvalidFile
            Not such a file, another version, truncated, or changed since it was written.
        InvalidMechanism, PrivacyViolation, CertificateRejected
            It is intact but claims what is not true.
        """
        return Mechanism.from_parts(*files.load(path, certificate=certificate))

    @staticmethod
    def from_parts(table: Table, certificate: Certificate | None) -> Mechanism:
        """Return the mechanism with this table and this certificate.

        What was computed from the table, such as its audit, is kept and not computed again.

        Parameters
        ----------
        table : Table
            An exact table with its claim.
        certificate : Certificate or None
            A proof of optimality, or None. It is not checked here.

        Returns
        -------
        Mechanism
        """
        mechanism = Mechanism.__new__(Mechanism)
        set_fields(
            mechanism,
            law=table.law,
            promise=table.promise,
            output_values=table.output_values,
            input_values=table.input_values,
            certificate=certificate,
        )
        mechanism.__dict__.update(table.__dict__)
        return mechanism

    def __repr__(self) -> str:
        verdict = "private" if self.audit().holds else "NOT PRIVATE"
        if self.closed is not None:
            kept = "".join(f" {item.short}" for item in SEVEN if item.short in self.closed.holds)
            size = f"{self.closed.name}, counts 0 .. {self.closed.n}"
            return f"<Mechanism {size}, {self.promise!r}, {verdict}; properties:{kept}>"
        kept = (
            "".join(f" {name}" for name, holds in self.properties().items() if holds)
            if self.inputs <= 33
            else " ..."
        )
        return (
            f"<Mechanism {self.outputs}x{self.inputs}, {self.promise!r}, {verdict};"
            f" properties:{kept or ' none'}>"
        )


# ------------------------------------------------------------------------------------------------
# Release a column of true counts in a CSV file, a block of rows at a time.


_ROWS = 1 << 10  # rows held at a time: few enough for the cache. Seeded draws do not depend on it.


class Read(NamedTuple):
    """The number of rows of a file, and what separated their cells."""

    rows: int
    separator: str


def release_column(
    mechanism: Mechanism,
    source: Path,
    target: Path,
    column: str | Sequence[str],
    keep: Sequence[str] = (),
    *,
    options: ReadOptions = AS_IT_IS,
    rng: np.random.Generator | None = None,
    spreadsheet: bool = False,
) -> Read:
    """Write a CSV file with copied columns of another and released counts, or nothing at all.

    What is read is UTF-8 with a header line, with any line ends, quotes around separators and line
    ends, a byte order mark or none. Empty lines at the end are no rows; elsewhere they are missing
    counts. A count is an integer, maybe with a decimal part of one or two zeros, after a point or a
    comma: 7.0 and 7,0. Three zeros are refused: 7.000 may be seven thousand. What is written has
    the same separator and byte order mark, the line ends of RFC 4180, and quotes where they are
    needed.
    """
    names = [column] if isinstance(column, str) else [*column]
    values, pairs = mechanism.output_values, isinstance(mechanism.input_values, CountPairs)
    if len(names) != 1 + pairs:
        wanted = "pairs of counts, two columns" if pairs else "counts, one column"
        raise ValueError(f"the mechanism takes {wanted}, got {len(names)}")
    total = 0
    with (
        opened_rows(source, options) as table,
        replacing(target) as out,
        ProgressMeter("release", unit="rows") as meter,
    ):
        between = table.separator
        places, kept = table.places(names), table.places(keep)
        heading = comma_separated([[*keep, *names]], between, spreadsheet)
        out.write((table.mark + heading).encode())
        while block := list(islice(table.rows, _ROWS)):
            texts = [[row[place] for place in places] for row, _ in block]
            counts = [[count_in(cell) for cell in cells] for cells in texts]
            try:
                released = mechanism.release(
                    counts if pairs else [count for (count,) in counts], rng
                )
            except InvalidCount as error:
                bad = error.index if isinstance(error.index, int) else error.index[0]
                shown = ", ".join(map(repr, texts[bad]))
                raise table.refusal(
                    block[bad][1], f"{shown:.60} is not an integer between 0 and {error.largest}"
                ) from error
            columns: list[list[Any]] = [[row[k] for row, _ in block] for k in kept]
            answers = released.reshape(len(block), -1).T.tolist()
            if isinstance(values, Bands):
                columns += [[values.labels[k] for k in answer] for answer in answers]
            else:
                columns += answers
            lines = zip(*columns, strict=True)
            out.write(comma_separated(lines, between, spreadsheet).encode())
            total += len(block)
            meter.update(len(block))
        if not total:
            raise table.without_rows()
    return Read(total, between)
