"""Subset selection keeps the contract of oracles; and no oracle does better on average."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    SUE,
    CountMeanSketch,
    HadamardCountMeanSketch,
    JLOracle,
    ProjectiveGeometry,
    SubsetSelection,
)
from tests.contracts.oracle import (
    LN3,
    OracleContract,
    Twin,
    enumerated,
    positions,
    reports_of,
    subset_bytes,
    weights_of,
)
from tests.frequency.oracles import test_randomized_response
from tests.goodness_of_fit import FALSE_ALARM, goodness
from tests.tape import WORD


class TestSubsetSelection(OracleContract):
    """Sets of k items: Pr is p / C(D-1, k-1) for those with the own item, (1-p) / C(D-1, k) for the
    others (Ye and Barg 2018).
    """

    make = staticmethod(SubsetSelection)

    def twin(self, oracle):
        (inclusion,) = weights_of(oracle, "inclusion")
        k, domain, p = oracle.parameters["size"], oracle.domain, Fraction(inclusion, WORD)
        sets = list(combinations(range(domain), k))

        def chance(chosen, v):
            return (
                p / math.comb(domain - 1, k - 1)
                if v in chosen
                else (1 - p) / math.comb(domain - 1, k)
            )

        rows = [(subset_bytes(chosen, domain),) for chosen in sets]
        return Twin(
            reports_of(oracle, rows),
            [[chance(chosen, v) for v in range(domain)] for chosen in sets],
        )

    def test_thresholds_are_where_the_weights_say(self, case, monkeypatch):
        """The word after the independent bits decides whether the own item is in the set."""
        oracle = self.make(*case)
        (inclusion,) = weights_of(oracle, "inclusion")
        monkeypatch.setattr(
            "frequency.oracles.subset_selection.bernoulli_bits",
            lambda size, numerator, source: np.zeros(size, dtype=np.uint64),
        )
        for v, word in product(range(oracle.domain), (0, inclusion - 1, inclusion, WORD - 1)):
            if word < WORD and oracle.domain > 1:
                rest = np.random.default_rng(0)
                words = [np.array([word], dtype=np.uint64)]

                def source(size, words=words, rest=rest):
                    return (
                        words.pop() if words else rest.integers(0, WORD, size=size, dtype=np.uint64)
                    )

                monkeypatch.setattr(
                    "frequency.core.channel.bit_source", lambda rng, source=source: source
                )
                bits = np.unpackbits(oracle.privatize([v])["bits"][0], bitorder="little")
                assert bits[v] == (word < inclusion)
                assert bits.sum() == oracle.size

    @pytest.mark.parametrize("start", [0, WORD - 1])
    def test_the_set_is_uniform_wherever_it_starts(self, start, monkeypatch):
        """The independent bits that the set is made from only save time: a start that treats the
        other items alike will do.
        """
        oracle = SubsetSelection(5, 0.1)
        assert oracle.size == 2
        monkeypatch.setattr(
            "frequency.oracles.subset_selection.bernoulli_bits",
            lambda size, *_: np.full(size, start, dtype=np.uint64),
        )
        _, reports, _, P, _ = enumerated(TestSubsetSelection, 5, 0.1)
        found = np.bincount(
            positions(oracle.privatize(np.full(20_000, 2), np.random.default_rng(0)), reports),
            minlength=10,
        )
        assert goodness(found, P[:, 2]) > FALSE_ALARM

    def test_size_one_is_grr(self):
        for domain, epsilon in product((2, 3, 5), (LN3, 3, 10)):
            chosen = SubsetSelection(domain, epsilon)
            assert chosen.size == 1
            _, reports, table, _, _ = enumerated(TestSubsetSelection, domain, epsilon)
            assert (
                np.packbits(np.eye(domain, dtype=bool), axis=1, bitorder="little").tolist()
                == reports["bits"].tolist()
            )
            grr = enumerated(test_randomized_response.TestGRR, domain, epsilon).table
            near = Fraction(domain, WORD)  # each rounds to units of 2^-64 in its own way
            assert all(
                abs(a - b) <= near
                for mine, theirs in zip(table, grr, strict=True)
                for a, b in zip(mine, theirs, strict=True)
            )

    def test_least_variance(self):
        """No oracle does better on average over the domain (f = 1/D), whatever D and epsilon."""
        for domain, epsilon in product((2, 5, 20, 1000), (0.1, 1, 3)):
            least = SubsetSelection(domain, epsilon).variance(1, 1 / domain)
            for kind in (
                GRR,
                SUE,
                OUE,
                OLH,
                HRR,
                ProjectiveGeometry,
                CountMeanSketch,
                HadamardCountMeanSketch,
                JLOracle,
            ):
                assert kind(domain, epsilon).variance(1, 1 / domain) >= least * (1 - 1e-9), (
                    kind,
                    domain,
                    epsilon,
                )
