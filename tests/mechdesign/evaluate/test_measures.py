"""Measures of errors against their definitions, written out."""

from __future__ import annotations

import numpy as np
import pytest

from mechdesign.evaluate import mean_absolute, mean_square_of_ranges, total_variation


@pytest.mark.parametrize("domain", [2, 3, 17])
@pytest.mark.parametrize("least", [1, 2])
def test_ranges_are_differences_of_prefixes(domain: int, least: int) -> None:
    rng = np.random.default_rng(domain)
    answers, truth = rng.random(domain), rng.random(domain)
    below = np.concatenate([[0.0], answers - truth])
    squares = [
        (below[last + 1] - below[first]) ** 2
        for first in range(domain)
        for last in range(first + least - 1, domain)
    ]
    assert mean_square_of_ranges(answers, truth, least) == pytest.approx(np.mean(squares))


def test_prefixes_that_are_right_make_right_ranges() -> None:
    truth = np.arange(1, 6) / 5
    assert mean_square_of_ranges(truth, truth) == mean_square_of_ranges(truth, truth, 2) == 0
    # Only the empty prefix differs from the others: five of fifteen ranges are off
    assert mean_square_of_ranges(truth + 0.1, truth) == pytest.approx(5 * 0.01 / 15)


@pytest.mark.parametrize(("domain", "least"), [(5, 0), (5, 3), (0, 1), (1, 2)])
def test_ranges_that_are_not_there_are_refused(domain: int, least: int) -> None:
    with pytest.raises(ValueError, match=r"least number|no range"):
        mean_square_of_ranges(np.zeros(domain), np.zeros(domain), least)


def test_absolute_errors() -> None:
    answers, truth = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.5, 0.25])
    assert mean_absolute(answers, truth) == pytest.approx(0.5 / 3)
    assert total_variation(answers, truth) == 0.25
