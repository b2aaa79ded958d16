"""Local terms for what smooth terms leave, chosen by the evidence, with scales of their own.

The joint distribution of a pair is P + D: P that of independent attributes, a fit of smooth terms
or what other pairs imply, and D(x, y) = p(x) q(y) sum_ij c_ij w_i(x) v_j(y) with margins 0, c_ij ~
N(0, tau^2). Posteriors and evidence have closed forms, for every kind of terms and every tau (see
`rangeq.grids.wavegrid.shrinkage`): kinds and all P are averaged with their evidence as weights. A
ratio of evidence to no local terms that is above r is seen in at most one of r data sets that P
explains (Markov's inequality).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple

import numpy as np

from mechdesign.base import Floats
from rangeq.core import STRENGTH, adapted
from rangeq.grids.wavegrid.interactions import Interaction, Key, Pair, Scales
from rangeq.grids.wavegrid.shrinkage import Shrinkage, SmoothDirections, TermBasis, scores_of

#: The prior probabilities that a pair has no smooth terms, and that its attributes are independent
#: given others: that is part of the first. With a larger first, pairs whose dependence is about as
#: large as its error would be answered as if they had none; a smaller one costs even data and
#: patterns of halves precision.
INDEPENDENT, _IMPLIED = 0.3, 0.05

# The least part of all pairs that prior probabilities count as. Where no pair tells anything by
# itself all together seem to say that others imply them, whatever they are.
_PER_PAIR = 0.25

_NEGLIGIBLE = 0.01  # the weight below which explanations are left out


class SmoothPrior(NamedTuple):
    """A prior of the smooth terms of pairs."""

    scales: Scales  # of the coefficients
    share: float  # the probability of these scales, for pairs that are not independent


class PairTerms(NamedTuple):
    """The kinds of local terms of a pair, as many for all pairs: functions of both attributes."""

    left: Sequence[TermBasis]
    right: Sequence[TermBasis]
    # The logarithm of the prior density of what of each kind was fitted to the pair itself, 0 where
    # it is highest: shape (kinds,)
    scaled: Floats | float = 0.0


@dataclass(frozen=True, eq=False)
class PairExplanation:
    """An explanation of a pair, one of those that are averaged."""

    weight: float  # its posterior probability
    fit: Interaction  # P, as it was fitted
    smooth: Floats  # P as it gives way to the local terms: shape (cells, cells)
    left: Floats  # functions of the first attribute: shape (cells, a)
    right: Floats  # functions of the second: shape (cells, b)
    mean: Floats  # of the coefficients: shape (a, b)
    variance: Floats
    implied: bool  # whether P is what other pairs imply

    @property
    def joint(self) -> Floats:
        """P + D: shape (cells, cells)."""
        return np.asarray(self.smooth + self.left @ self.mean @ self.right.T)


class PairCandidate(NamedTuple):
    """A P that may explain a pair."""

    fit: Interaction  # P
    evidence: float  # the logarithm of it without local terms
    # The directions in which P is refitted beside local terms; None: P stays as it is, as of a
    # candidate whose weight is negligible
    directions: SmoothDirections | None = None


@dataclass(frozen=True, eq=False)
class PairCandidates(Generic[Key]):
    """The explanations of pairs: some P, each with every kind of local terms or none."""

    pairs: Mapping[Key, Pair]  # what is known of each pair
    candidates: Mapping[Key, tuple[PairCandidate, ...]]  # the P of each pair: as many for all
    logarithms: Mapping[Key, Floats]  # their evidence, for none and each kind: shape (P, kinds + 1)
    details: Mapping[Key, PairTerms]  # the kinds of local terms of each
    prior: Floats  # the prior probability of each P: shape (P,)
    likely: Floats  # those of no local terms, and of each kind: shape (kinds + 1,)
    implied: bool = False  # whether the last P is what other pairs imply

    @classmethod
    def of(
        cls,
        pairs: Mapping[Key, Pair],
        details: Mapping[Key, PairTerms],
        likely: Floats,
        priors: Sequence[SmoothPrior] = (),
        smooth: Mapping[Key, Sequence[Interaction]] | None = None,
        independent: float = INDEPENDENT,
    ) -> PairCandidates[Key]:
        """Make the candidates of pairs: independent attributes, and the fits of smooth terms."""
        dependent = [(1 - independent) * smooth_prior.share for smooth_prior in priors]
        prior = np.array([independent, *dependent] if priors else [1.0])
        scales = [smooth_prior.scales for smooth_prior in priors]
        candidates = {
            key: _candidates(pair, scales, smooth[key] if smooth else (), prior)
            for key, pair in pairs.items()
        }
        logarithms = {
            key: _logarithms(pair, candidates[key], details[key]) for key, pair in pairs.items()
        }
        return cls(pairs, candidates, logarithms, details, prior, likely)

    def with_tables(self, tables: Mapping[Key, Floats]) -> PairCandidates[Key]:
        """Add a P for some pairs, a table that others imply; the other pairs are left out."""
        pairs = {key: pair for key, pair in self.pairs.items() if key in tables}
        candidates, logarithms = {}, {}
        for key, pair in pairs.items():
            fit = replace(
                pair.independent(), joint=tables[key], likelihood=pair.likelihood(tables[key])
            )
            other = PairCandidate(fit, fit.likelihood)
            candidates[key] = *self.candidates[key], other
            evidence = _logarithms(pair, [other], self.details[key])
            logarithms[key] = np.concatenate([self.logarithms[key], evidence])
        # Taken off the probability of independence, of which an implied table is the refinement:
        # the sum stays 1
        prior = np.array([self.prior[0] - _IMPLIED, *self.prior[1:], _IMPLIED])
        return replace(
            self,
            pairs=pairs,
            candidates=candidates,
            logarithms=logarithms,
            prior=prior,
            implied=True,
        )

    def explained(self) -> dict[Key, list[PairExplanation]]:
        """Explanations of all pairs, of weights 1 in sum."""
        if not self.pairs:
            return {}
        evidence = np.array([self.logarithms[key] for key in self.pairs])
        prior = np.multiply.outer(self.prior, self.likely)
        # With many pairs the prior must weigh more, or all of them together override it
        strength = max(STRENGTH, _PER_PAIR * len(evidence))
        flat = adapted(evidence.reshape(len(evidence), -1), prior.ravel(), strength)
        result: dict[Key, list[PairExplanation]] = {}
        for (key, pair), weights in zip(
            self.pairs.items(), flat.reshape(evidence.shape), strict=True
        ):
            # Negligible explanations are dropped, and the others have the sum 1 again: each one
            # that is kept costs slopes and variances in every answer
            kept = np.argwhere(weights > _NEGLIGIBLE)
            total = sum(weights[tuple(at)] for at in kept)
            left, right, _ = self.details[key]
            result[key] = [
                _explanation(
                    pair,
                    self.candidates[key][place],
                    (left[kind - 1], right[kind - 1]) if kind else None,
                    float(weights[place, kind] / total),
                    implied=self.implied and place == len(self.prior) - 1,
                )
                for place, kind in kept.tolist()
            ]
        return result


def _candidates(
    pair: Pair, scales: Sequence[Scales], smooth: Sequence[Interaction], prior: Floats
) -> tuple[PairCandidate, ...]:
    """The candidates of a pair: independent attributes, and fits of smooth terms."""
    alone = pair.independent()
    candidates = [PairCandidate(alone, alone.likelihood)]
    for fit, fit_scales in zip(smooth, scales, strict=True):
        # Without any terms it is independent attributes again
        evidence = fit_scales.pair_evidence(fit) if fit.theta.size else fit.likelihood
        candidates.append(PairCandidate(fit, evidence))
    weights = np.log(prior) + [candidate.evidence for candidate in candidates]
    # Directions cost a solution each: only candidates that can matter have them
    likely = weights > weights.max() + np.log(_NEGLIGIBLE)
    return candidates[0], *(
        candidate._replace(directions=SmoothDirections.of(pair, candidate.fit, fit_scales))
        if matters and candidate.fit.theta.size
        else candidate
        for candidate, fit_scales, matters in zip(candidates[1:], scales, likely[1:], strict=True)
    )


def _logarithms(pair: Pair, candidates: Sequence[PairCandidate], details: PairTerms) -> Floats:
    """The log evidence of each P, without local terms and with each kind of them."""
    evidence = np.empty((len(candidates), len(details.left) + 1))
    evidence[:, 0] = [candidate.evidence for candidate in candidates]
    unexplained = [pair.unexplained(candidate.fit.joint) for candidate in candidates]
    for kind, both in enumerate(zip(details.left, details.right, strict=True), start=1):
        shrinkage = Shrinkage.of(pair, both)
        for place, (candidate, left) in enumerate(zip(candidates, unexplained, strict=True)):
            scores = scores_of(left, both)
            each = shrinkage.evidence(scores)
            if candidate.directions:
                each = each + candidate.directions.adjusted(shrinkage, both, scores).evidence
            # All tau are equally likely: the mean of the evidence, by log-sum-exp
            evidence[place, kind] = np.logaddexp.reduce(each) - np.log(len(each))
    evidence[:, 1:] += evidence[:, :1] + details.scaled
    return evidence


def _explanation(
    pair: Pair,
    candidate: PairCandidate,
    both: tuple[TermBasis, TermBasis] | None,
    weight: float,
    implied: bool,
) -> PairExplanation:
    fit, directions = candidate.fit, candidate.directions
    smooth = fit.joint
    if both is None:
        none = np.zeros((0, 0))
        nothing = [np.zeros((len(mass), 0)) for mass in pair.margins]
        return PairExplanation(weight, fit, smooth, nothing[0], nothing[1], none, none, implied)
    shrinkage = Shrinkage.of(pair, both)
    scores = scores_of(pair.unexplained(fit.joint), both)
    logarithms = shrinkage.evidence(scores)
    means, variances = shrinkage.posterior(scores)
    if directions:
        adjustment = directions.adjusted(shrinkage, both, scores)
        logarithms = logarithms + adjustment.evidence
        means = means + adjustment.means.reshape(means.shape)
        variances = variances + adjustment.variances.reshape(means.shape)
    # Posterior probabilities of tau; the mean and the variance below are those of the mixture (law
    # of total variance)
    shares = np.exp(logarithms - logarithms.max())
    shares /= shares.sum()
    mean = np.tensordot(shares, means, axes=1)
    variance = np.tensordot(shares, variances + (means - mean) ** 2, axes=1)
    if directions:
        # dP / dz times the mean of z: the smooth fit gives back what it had followed of the noise
        # that local terms now explain
        smooth = smooth + np.tensordot(shares @ adjustment.moved, directions.slopes, axes=1)
    left, right = (each.functions for each in both)
    return PairExplanation(weight, fit, smooth, left, right, mean, variance, implied)
