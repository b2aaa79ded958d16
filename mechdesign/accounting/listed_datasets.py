"""The privacy of a few shuffled reports, exactly: all datasets and all collections are listed.

Rows of a table are reports, columns are values. Let L_x be the linear form with the probabilities
R_x(y) as coefficients of variables z_y. The coefficient at z^c of the product of the forms of the
others' values is the probability that there are c_y reports y among theirs; so with F for that
product and t = e^epsilon, delta is the sum of the coefficients above 0 of F (L_x - t L_x'). Its
largest value over all pairs and all multisets of the others' values is no bound but delta itself.
Everything is in integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import permutations

import numpy as np
import numpy.typing as npt
from flint import fmpz_mpoly, fmpz_mpoly_ctx

#: The most users of whom all datasets are listed.
LARGEST_N = 9

_MOST = 250_000  # the most coefficients of all datasets and pairs


class ListedDatasets:
    """All datasets of n users and the laws of their collections.

    Parameters
    ----------
    rows : sequence of sequence of int
        The table in units of the sum of each column, shape (outputs, values).
    n : int
        The number of users, 1 to `LARGEST_N`.
    """

    def __init__(self, rows: Sequence[Sequence[int]], n: int) -> None:
        self._columns = _distinct(rows)
        self._n, self._total = n, sum(self._columns[0])

    @staticmethod
    def few_enough(rows: Sequence[Sequence[int]], n: int) -> bool:
        """Whether that takes about a second at most, for a search among epsilons."""
        if n > LARGEST_N:
            return False
        values, outputs = len(_distinct(rows)), len(rows)
        datasets = math.comb(n + values - 2, n - 1)
        return datasets * values * (values - 1) * math.comb(n + outputs - 1, n) <= _MOST

    def delta(self, ratio: Fraction) -> Fraction:
        """Return delta at the logarithm of a ratio, exactly.

        Parameters
        ----------
        ratio : Fraction
            e^epsilon, at least 1.

        Returns
        -------
        Fraction
        """
        up, down = ratio.as_integer_ratio()
        most = 0
        for laws in self._laws:
            for first, second in permutations(laws, 2):
                more = down * first - up * second
                most = max(most, int(more[more > 0].sum()))
        return Fraction(most, down * self._total**self._n)

    @cached_property
    def _laws(self) -> list[list[npt.NDArray[np.object_]]]:
        """The laws of the collection for each dataset of the others and each value of the user."""
        context = fmpz_mpoly_ctx.get([f"z{y}" for y in range(len(self._columns[0]))])
        units = context.gens()
        forms = [
            sum((w * unit for w, unit in zip(column, units, strict=True)), 0 * units[0])
            for column in self._columns
        ]
        found = []
        for others in _products(forms, self._n - 1, context.from_dict({(0,) * len(units): 1})):
            # All have the same monomials, as no weight is 0, in the same order.
            laws = [[int(c) for c in (others * form).coeffs()] for form in forms]
            found.append([np.array(law, dtype=object) for law in laws])
        return found


def _distinct(rows: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the different columns of a table."""
    return list(dict.fromkeys(zip(*rows, strict=True)))


def _products(
    forms: Sequence[fmpz_mpoly], factors: int, product: fmpz_mpoly
) -> Iterator[fmpz_mpoly]:
    """Yield the products of all multisets of the forms of a size."""
    if factors == 0:
        yield product
    elif len(forms) == 1:
        yield product * forms[0] ** factors
    else:
        for times in range(factors + 1):
            yield from _products(forms[1:], factors - times, product * forms[0] ** times)
