"""The figure of three trusts: its points are what plans say, and all of them are drawn."""

from fractions import Fraction

import numpy as np
import pytest

from examples.three_trusts import DELTA, QUESTIONS, TRUSTED, N, Point, best, drawn
from mechdesign import plan
from mechdesign.accounting import shuffled


@pytest.mark.slow
def test_a_point_is_the_best_of_a_plan_and_keeps_the_promise() -> None:
    question, epsilon = next(iter(QUESTIONS)), Fraction(1, 4)
    found = plan("frequencies", 2, n=N, epsilon=epsilon, delta=DELTA, trust="shuffled")
    (first, *_) = found.candidates
    point = best(question, "shuffled", epsilon)
    assert (point.name, point.error) == (first.name, first.error)
    assert shuffled(first.protocol, N).epsilon(DELTA) <= epsilon
    assert point.local_epsilon == float(first.local_epsilon or 0)
    nobody, curator = (best(question, trust, epsilon) for trust in ("local", "curator"))
    assert nobody.local_epsilon is curator.local_epsilon is None
    assert nobody.error > 10 * point.error > 10 * curator.error


def test_every_point_is_drawn_in_the_panel_of_its_question() -> None:
    points = [
        Point(question, trust, Fraction(k, 4), "any", None, float(10 * p + t + k))
        for p, question in enumerate(QUESTIONS)
        for t, trust in enumerate(TRUSTED)
        for k in (1, 2, 4)
    ]
    figure = drawn(points)
    for axes, question in zip(figure.axes, QUESTIONS, strict=True):
        assert axes.get_title(loc="left") == question
        for line, trust in zip(axes.lines, TRUSTED, strict=True):
            own = [one for one in points if (one.question, one.trust) == (question, trust)]
            np.testing.assert_array_equal(line.get_xdata(), [float(one.epsilon) for one in own])
            np.testing.assert_array_equal(line.get_ydata(), [one.error for one in own])
    assert len(figure.legends[0].get_texts()) == len(TRUSTED)
