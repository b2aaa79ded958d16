"""thinned(...): the mechanism that counts a secret random sample of the respondents."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from flint import fmpz_mat

from mechdesign.base.numbers import Rational, exact
from mechdesign.base.text import brief
from mechdesign.exceptions import UnboundedRatio
from mechdesign.privacy import Metric, Privacy
from mechdesign.table import Table


def thinned(table: Table, rate: Rational) -> Table:
    """The table of a count of a sample: each respondent is in it with probability ``rate``.

    Who is in the sample is drawn for every respondent independently, and kept secret. Then the
    count of a sample of j respondents has the binomial law B(j, rate), so that sampling and
    releasing together are one more exact table,

        P'[i, j] = sum over m of C(j, m) rate^m (1 - rate)^(j - m) P[i, m],

    and what it keeps is read off its entries. It is at least what amplification by sampling
    promises, 1 - rate + rate e^epsilon in the place of e^epsilon (Balle, Barthe and Gaboardi,
    NeurIPS 2018, theorem 8), for counts that differ by one: a respondent who is there or not, or
    whose answer counts or not.

    Parameters
    ----------
    table : Table
        A mechanism for counts from 0 of which those that differ by one, or by at most k, are
        neighbours.
    rate : Fraction, int, str or Decimal
        Above 0 and at most 1. Floats are refused (`InexactNumber`).

    Returns
    -------
    Table
        For the count of all respondents. It claims exactly what it keeps, and its outputs are of
        the sample: divided by ``rate`` they estimate the count of all.

    Raises
    ------
    UnboundedRatio
        An output is possible for one count and impossible for a neighbour, also after sampling.
    ValueError
        Another rate, or a table whose inputs are no counts of respondents.

    >>> from mechdesign import named
    >>> sampled = thinned(named.geometric(8, alpha="1/2"), "1/10")
    >>> sampled.privacy.alpha, sampled.audit().holds
    (Fraction(10, 11), True)
    """
    rate = exact(rate, "rate")
    if not 0 < rate <= 1:
        raise ValueError(f"a rate must be above 0 and at most 1, got {brief(rate)}")
    neighbours = table.privacy.neighbours
    if neighbours == "all" or isinstance(neighbours, (tuple, Metric)):
        raise ValueError(
            "only a count of respondents can be one of a sample of them: neighbours must be counts"
            f" that differ by one or a few, got {table.privacy!r:.80}"
        )
    weights = (fmpz_mat(table.weights) * fmpz_mat(_samples(table.inputs, rate))).tolist()
    made = partial(
        Table.from_weights,
        [[int(weight) for weight in row] for row in weights],
        table.denominator * rate.denominator ** (table.inputs - 1),
        outputs=table.output_values,
        inputs=table.input_values,
    )
    found = made(table.privacy).audit()
    if isinstance(found.ratio, float):
        raise UnboundedRatio(
            f"output {found.output} is possible for one of the counts {found.inputs} and impossible"
            " for the other, whoever is in the sample"
        )
    return made(Privacy(alpha=1 / found.ratio, neighbours=neighbours))


def _samples(inputs: int, rate: Fraction) -> list[list[int]]:
    """The probability of each size of the sample (rows) of so many respondents (columns).

    In units of the denominator of the rate, to the power of the largest count.
    """
    kept, whole = rate.numerator, rate.denominator
    columns = [[whole ** (inputs - 1), *[0] * (inputs - 1)]]
    for _ in range(inputs - 1):
        last = columns[-1]
        columns.append(
            [
                ((whole - kept) * out + kept * joined) // whole
                for out, joined in zip(last, [0, *last], strict=False)
            ]
        )
    return [list(row) for row in zip(*columns, strict=True)]
