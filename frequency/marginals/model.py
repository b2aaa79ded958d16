"""Models of records, for the marginals of a collection: of all attributes, or of parts of many.

Where the records are too many to list, an answer is that of a log-linear model of the attributes
asked for and of those that depend on them most: all marginals inside are fitted together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import scipy

from frequency.core import shared_out
from frequency.marginals.log_linear import LogLinear, Moments
from frequency.schema import Domain
from mechdesign.base import Floats, Items, listed, shown

Names = tuple[str, ...]

#: The limits of a model of all attributes: its fit takes some seconds then.
MOST_RECORDS, MOST_PARAMETERS = 1 << 20, 1500

#: The limits up to which attributes are added to those that are asked for.
_RECORDS_OF_A_PART, _PARAMETERS_OF_A_PART = 1 << 14, 400


class Conditional(NamedTuple):
    """A conditional: attributes of a sampled record that are drawn together, given others."""

    names: Names  # what is drawn
    given: Names  # drawn before


class MarginalModel:
    """A collection of log-linear models of a domain's attributes, fitted when they are needed.

    ``told`` gives the moments of each ``measured`` set of attributes, in the domain's order, or
    None. ValueError where a model of more than 1500 parameters, or 2^20 records, is asked for.
    """

    def __init__(
        self, domain: Domain, measured: Sequence[Names], told: Callable[[Names], Moments | None]
    ) -> None:
        self.domain, self._told = domain, told
        self._measured = {
            names: math.prod(domain[name] - 1 for name in names)
            for names in measured
            if all(domain[name] > 1 for name in names)
        }
        self._moments: dict[Names, Moments | None] = {}
        self._fits: dict[Names, LogLinear] = {}
        self._informations: dict[Names, float] = {}

    def _parameters(self, names: Names) -> int:
        return sum(size for inside, size in self._measured.items() if set(inside) <= set(names))

    def _fits_in(self, names: Names, records: int, parameters: int) -> bool:
        size = math.prod(self.domain[name] for name in names)
        return size <= records and self._parameters(names) <= parameters

    def whole(self) -> bool:
        """Whether one model holds all attributes."""
        return self._fits_in(self.domain.attributes, MOST_RECORDS, MOST_PARAMETERS)

    def around(self, names: Names) -> LogLinear:
        """Return the model that answers questions about some attributes."""
        if self.whole():
            return self._fitted(self.domain.attributes)
        inside = set(names)
        while True:
            around = sorted(
                (sum(self._information(name, two) for two in inside), name)
                for name in self.domain
                if name not in inside
            )
            # Greedy: the attribute with most information about those inside, if it still fits; one
            # that does not fit may be followed by one of fewer values that does.
            for gain, name in reversed(around):
                if gain <= 0:
                    continue
                more = self._ordered({*inside, name})
                if self._fits_in(more, _RECORDS_OF_A_PART, _PARAMETERS_OF_A_PART):
                    inside.add(name)
                    break
            else:
                return self._fitted(self._ordered(inside))

    def _ordered(self, names: set[str]) -> Names:
        return tuple(name for name in self.domain if name in names)

    def _fitted(self, names: Names) -> LogLinear:
        if names not in self._fits:
            if not self._fits_in(names, MOST_RECORDS, MOST_PARAMETERS):
                raise ValueError(
                    f"the model of {listed(names)} would have {self._parameters(names)} parameters"
                    f" and {shown(math.prod(self.domain[name] for name in names))} records, more"
                    f" than {MOST_PARAMETERS} or {MOST_RECORDS}"
                )
            moments = []
            for inside in self._measured:
                if set(inside) <= set(names):
                    if inside not in self._moments:
                        self._moments[inside] = self._told(inside)
                    known = self._moments[inside]
                    if known is not None:
                        moments.append(known)
            self._fits[names] = LogLinear(self.domain.project(names), moments)
        return self._fits[names]

    def _information(self, one: str, two: str) -> float:
        """Return the mutual information of two attributes by themselves, shrunk by the data."""
        pair = self._ordered({one, two})
        if pair not in self._informations:
            known = pair in self._measured and self._fits_in(pair, MOST_RECORDS, MOST_PARAMETERS)
            if known:
                # Of the fitted model, whose scales shrink it: that of noisy marginals is far above
                # 0 for independent attributes, too.
                joint = self._fitted(pair).joint.reshape(self.domain.project(pair).shape)
                alone = joint.sum(axis=1)[:, None] * joint.sum(axis=0)
                information = float(scipy.special.rel_entr(joint, alone).sum())
            self._informations[pair] = information if known else 0.0
        return self._informations[pair]

    # ------------------------------------------------------------------------------------ records

    def conditionals(self) -> list[Conditional]:
        """Return the order of drawing: a network where each attribute depends on a few before."""
        if self.whole() or len(self.domain) == 1:
            return [Conditional(self.domain.attributes, ())]
        pairs = combinations(self.domain, 2)
        first = max(pairs, key=lambda pair: self._information(*pair))
        done = self.around(self._ordered(set(first))).domain.attributes
        result = [Conditional(done, ())]
        while left := [name for name in self.domain if name not in done]:
            name = max(left, key=lambda one: max(self._information(one, two) for two in done))
            given: set[str] = set()
            for two in sorted(done, key=lambda two: -self._information(name, two)):
                more = self._ordered({*given, two, name})
                if self._information(name, two) > 0 and self._fits_in(
                    more, _RECORDS_OF_A_PART, _PARAMETERS_OF_A_PART
                ):
                    given.add(two)
            result.append(Conditional((name,), self._ordered(given)))
            done = (*done, name)
        return result

    def sample(self, n: int, rng: np.random.Generator, drawn: bool) -> Items:
        """Return records of the fit, or of a draw from its posterior: shape (n, attributes)."""
        records = np.zeros((n, len(self.domain)), dtype=np.int64)
        for names, given in self.conditionals():
            fit = self._fitted(self._ordered({*names, *given}))
            domain, table = fit.domain, fit.drawn(rng) if drawn else fit.joint
            cells = domain.cells(np.arange(domain.size), (*given, *names))
            joint = np.bincount(cells, table).astype(np.float64)
            joint = joint.reshape(domain.project(given).size if given else 1, -1)
            seen = np.zeros(n, dtype=np.int64)
            for name in given:
                seen = seen * self.domain[name] + records[:, self.domain.places((name,))[0]]
            # Every combination of values gets its share of the records but for rounding, at random
            values = self.domain.project(names).values(_shared_out(joint, seen, rng))
            records[:, list(self.domain.places(names))] = values
        return rng.permutation(records)


def _shared_out(joint: Floats, seen: Items, rng: np.random.Generator) -> Items:
    """Return cells for each row of a table that is seen: each its share, rounded at random."""
    result = np.zeros(len(seen), dtype=np.int64)
    order = np.argsort(seen, kind="stable")
    numbers = np.bincount(seen, minlength=len(joint))
    ends = np.cumsum(numbers)
    for row in np.flatnonzero(numbers).tolist():
        inside = order[ends[row] - numbers[row] : ends[row]]
        result[inside] = shared_out(joint[row], len(inside), rng)
    return result
