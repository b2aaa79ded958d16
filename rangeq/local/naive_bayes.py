"""Naive Bayes classifiers, and densities of each class, from answers about ranges.

Range queries, section 6: "building a Naive Bayes classifier for a public class based on private
numerical attributes"; here the class may be private, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy

from frequency.core import Answer
from frequency.schema import Domain
from mechdesign.base import Between, Floats, Integers, Items, shown


class Answering(Protocol):
    """An estimate that answers questions about ranges of attributes."""

    def answer(self, where: Mapping[Any, Any]) -> Answer:
        """The fraction of the population with these values."""


class NaiveBayes:
    """A classifier: the probability of each class, and of each value of each attribute given it.

    The attributes are taken to be independent within a class.

    Parameters
    ----------
    domain : Domain
        The attributes, without the class.
    prior : array_like
        Shape (classes,): the share of each class, above 0, of sum 1.
    densities : mapping of str to array_like
        For each attribute shape (classes, values): rows above 0, of sum 1.

    Raises
    ------
    ValueError
        Other shapes or numbers.
    """

    def __init__(
        self, domain: Domain, prior: npt.ArrayLike, densities: Mapping[str, npt.ArrayLike]
    ) -> None:
        self.domain = domain
        self.prior: Floats = _shares(prior, "prior", 1)
        if set(densities) != set(domain):
            raise ValueError(f"densities must be of {shown(domain.names)}, got {shown(densities)}")
        self.densities: dict[str, Floats] = {
            name: _shares(densities[name], f"densities[{name!r}]", 2) for name in domain
        }
        for name, table in self.densities.items():
            if table.shape != (len(self.prior), domain[name]):
                raise ValueError(
                    f"densities[{name!r}] must have shape {(len(self.prior), domain[name])}, got"
                    f" {table.shape}"
                )

    @classmethod
    def private(cls, estimate: Answering, domain: Domain, given: str) -> NaiveBayes:
        """Make a classifier from an estimate in which the class is a private attribute, too.

        Parameters
        ----------
        estimate : PerAttributeEstimate, MarginalEstimate or another
            It answers ``{class: value, attribute: Between(first, last)}``, with variances: of
            `PerAttribute` with the class as the given attribute, or of marginals of two attributes.
        domain : Domain
            Its attributes, the class among them.
        given : str
            The class.

        Returns
        -------
        NaiveBayes
            See `density` for how smooth it is.

        Raises
        ------
        ValueError
            The class is none of the attributes, or there are no reports.
        UnknownVariance
            The estimate states no variances.
        """
        domain.checked([given])
        classes = np.arange(domain[given])
        rest = Domain({name: domain[name] for name in domain if name != given})

        def asked(name: str, first: Integers, last: Integers) -> tuple[Any, Any]:
            return tuple(estimate.answer({given: classes[:, None], name: Between(first, last)}))

        return cls._fitted(rest, tuple(estimate.answer({given: classes})), asked)

    @classmethod
    def public(
        cls, estimates: Sequence[Answering], domain: Domain, users: Sequence[int]
    ) -> NaiveBayes:
        """Make a classifier from an estimate for each class, of users known to be in it.

        Parameters
        ----------
        estimates : sequence of PerAttributeEstimate, MarginalEstimate or others
            They answer ``{attribute: Between(first, last)}``, with variances; one a class.
        domain : Domain
            Their attributes.
        users : sequence of int
            The number of users of each class, at least 1.

        Returns
        -------
        NaiveBayes
            See `density` for how smooth it is.

        Raises
        ------
        ValueError
            Not as many numbers as estimates, or there are no reports.
        UnknownVariance
            The estimates state no variances.
        """
        counts = np.asarray(users, dtype=np.float64)
        if counts.shape != (len(estimates),) or not (counts >= 1).all():
            raise ValueError(
                f"users must be {len(estimates)} numbers of users of at least 1, one a class, got"
                f" {shown(users)}"
            )
        share = counts / counts.sum()

        def asked(name: str, first: Integers, last: Integers) -> tuple[Any, Any]:
            within = {name: Between(first, last)}
            answers = [tuple(estimate.answer(within)) for estimate in estimates]
            values, variances = (np.stack(part) for part in zip(*answers, strict=True))
            # Within a class an estimate is of that class alone: times its share it is joint, and
            # the variance goes by the square
            return share[:, None] * values, share[:, None] ** 2 * variances

        return cls._fitted(domain, (share, np.zeros(len(share))), asked)

    @classmethod
    def _fitted(
        cls,
        domain: Domain,
        total: tuple[Any, Any],
        asked: Callable[[str, Integers, Integers], tuple[Any, Any]],
    ) -> NaiveBayes:
        prior = _positive(*total)
        densities = {name: density(domain[name], partial(asked, name)) for name in domain}
        return cls(domain, prior / prior.sum(), densities)

    def log_joint(self, records: Any) -> Floats:
        """The log of the probability of each class together with the record: (records, classes).

        Parameters
        ----------
        records : array_like, DataFrame or mapping
            Of the attributes without the class: see `frequency.schema.Domain.records`.

        Returns
        -------
        numpy.ndarray of float64
            In nats.

        Raises
        ------
        InvalidValue
            The first bad value.
        """
        values = self.domain.records(records)
        total = np.tile(np.log(self.prior), (len(values), 1))
        for column, name in zip(values.T, self.domain, strict=True):
            # Logarithms: products over many attributes would underflow
            total += np.log(self.densities[name])[:, column].T
        return total

    def probabilities(self, records: Any) -> Floats:
        """The probability of each class, given the record: (records, classes); see `log_joint`."""
        return scipy.special.softmax(self.log_joint(records), axis=1)

    def predict(self, records: Any) -> Items:
        """Return the most probable class of each record: shape (records,); see `log_joint`."""
        return np.argmax(self.log_joint(records), axis=1)


def density(size: int, asked: Callable[[Integers, Integers], tuple[Floats, Floats]]) -> Floats:
    """The probability of each value in each class, from noisy shares of ranges of values.

    A histogram whose ranges have the number that noise and data ask for: of all numbers of ranges,
    1, 2, 4, .. and one for each value, the one with the least estimated squared error. The squared
    error of shares f of ranges of w values, summed over values, is that of the values within
    ranges, which does not depend on noise, plus the sum of Var(f) / w; up to a constant its
    unbiased estimate is the sum of (2 Var(f) - f^2) / w over ranges and classes. So strong noise
    makes few ranges.

    Shares become their means given the estimate, for normal errors and all shares of at least 0
    equally likely beforehand: above 0, since no value may be impossible because of noise.

    Parameters
    ----------
    size : int
        The number of values, at least 1.
    asked : callable
        The shares of classes and ranges and their variances, each of shape (classes, ranges), from
        the first and the last values of ranges.

    Returns
    -------
    numpy.ndarray of float64
        Shape (classes, size): above 0, rows of sum 1.

    Raises
    ------
    ValueError
        There are no reports: shares are not finite.
    """
    best, least = (np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64)), np.inf
    for ranges in (*(1 << k for k in range((size - 1).bit_length())), size):
        edges = np.arange(ranges + 1) * size // ranges
        width = np.diff(edges)
        values, variances = asked(edges[:-1], edges[1:] - 1)
        if not np.isfinite(values).all():
            raise ValueError("no reports: there is no density to estimate")
        # Unbiased: E f^2 is the square of the truth plus Var(f), of which 2 Var - f^2 leaves minus
        # the square plus Var
        error = float(((2 * variances - values**2) / width).sum())
        if error < least:
            best, least = (values, variances, width), error
    values, variances, width = best
    each: Floats = np.repeat(_positive(values, variances) / width, width, axis=1)
    return each / each.sum(axis=1, keepdims=True)


def _positive(values: Any, variances: Any) -> Floats:
    """The means of normal estimates' truths, where these are at least 0 and equally likely."""
    estimates = np.asarray(values, dtype=np.float64)
    if not np.isfinite(estimates).all():
        raise ValueError("no reports: there is nothing to estimate")
    # The mean of a normal law cut off at 0: estimate plus deviation times the inverse Mills ratio
    # at z
    deviation = np.sqrt(np.maximum(variances, 1e-24))
    z = estimates / deviation
    # The log of the normal density over that of its integral up to z: no overflow for z << 0
    ratio = np.exp(-z * z / 2 - np.log(2 * np.pi) / 2 - scipy.special.log_ndtr(z))
    # For z far below 0 the sum cancels to rounding, of either sign
    return np.maximum(estimates + deviation * ratio, 1e-12)


def _shares(given: npt.ArrayLike, name: str, axes: int) -> Floats:
    table = np.array(given, dtype=np.float64)
    fine = table.ndim == axes and table.size and np.isfinite(table).all() and (table > 0).all()
    if not fine or abs(table.sum(axis=-1) - 1).max() > 1e-9:
        raise ValueError(f"{name} must be shares above 0 that sum to 1, got {shown(given)}")
    table.setflags(write=False)
    return table
