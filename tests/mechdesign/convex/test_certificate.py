"""Certificates of convex objectives: what is changed in one is refused."""

import pickle
from dataclasses import replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from mechdesign import Privacy, design, named
from mechdesign.convex import ConvexCertificate, SupportingPlane
from mechdesign.convex.atoms import Affine, Square
from mechdesign.convex.reading import Node
from mechdesign.losses import Costs

STEP = Fraction(1, 10**6)


@pytest.fixture(scope="module")
def designed():
    return design(
        3,
        Privacy(alpha="1/2"),
        objective=lambda P: cp.sum_squares(P - np.eye(4)) + cp.norm(P[0]) + cp.exp(P[1, 2]),
        constraints=lambda P: [cp.sum(cp.entr(P[:, 0])) >= 1.3, cp.sum(cp.inv_pos(P[0])) <= 30],
        properties=["WH"],
    )


def changed(planes, k, **values):
    return (*planes[:k], replace(planes[k], **values), *planes[k + 1 :])


def test_it_verifies_and_survives_pickling(designed):
    certificate = pickle.loads(pickle.dumps(designed.convex))
    verdict = certificate.verify(designed.mechanism)
    assert verdict, verdict.reason
    assert "within" in verdict.reason
    assert 0 < certificate.gap == certificate.objective - certificate.bound
    assert certificate.relative_gap < 1e-6
    assert "proved" in str(certificate)


def test_the_constraints_matter(designed):
    assert min(designed.convex.multipliers) > 0
    entropy = -(designed.mechanism.matrix[:, 0] * np.log(designed.mechanism.matrix[:, 0])).sum()
    assert entropy >= 1.3 - 1e-12


def test_every_raised_plane_is_refused(designed):
    certificate = designed.convex
    for k, plane in enumerate(certificate.planes):
        planes = changed(certificate.planes, k, constant=plane.constant + STEP)
        verdict = replace(certificate, planes=planes).verify(designed.mechanism)
        assert not verdict
        assert "not proved to lie below" in verdict.reason


def test_every_wrong_gradient_is_refused(designed):
    certificate = designed.convex
    for k, plane in enumerate(certificate.planes):
        for place in range(len(plane.slope)):
            slope = list(plane.slope)
            slope[place] += Fraction(1, 100)
            planes = changed(certificate.planes, k, slope=tuple(slope))
            assert not replace(certificate, planes=planes).verify(designed.mechanism)


def test_planes_are_tried_even_if_their_proof_is_wrong(designed, monkeypatch):
    """A function whose conjugate is wrong: the plane exceeds it somewhere."""
    certificate = designed.convex
    k = next(k for k, node in enumerate(certificate.program.nodes) if node.atom == Square())
    planes = changed(certificate.planes, k, constant=certificate.planes[k].constant + 1)
    monkeypatch.setattr(SupportingPlane, "proved", lambda plane, atom: True)
    verdict = replace(certificate, planes=planes).verify(designed.mechanism)
    assert "a wrong gradient" in verdict.reason


@pytest.mark.parametrize("field", ["objective", "bound"])
@pytest.mark.parametrize("step", [STEP, -STEP, Fraction(1, 1 << 90)])
def test_changed_numbers_are_refused(designed, field, step):
    moved = replace(designed.convex, **{field: getattr(designed.convex, field) + step})
    assert not moved.verify(designed.mechanism)


def test_changed_multipliers_are_refused(designed):
    certificate = designed.convex
    for multipliers in (
        (certificate.multipliers[0] + STEP, certificate.multipliers[1]),
        (-certificate.multipliers[0], certificate.multipliers[1]),
        certificate.multipliers[:1],
    ):
        assert not replace(certificate, multipliers=multipliers).verify(designed.mechanism)


def test_another_mechanism_is_refused(designed):
    other = named.geometric(3, alpha="1/2")
    assert not designed.convex.verify(other)
    assert not designed.convex.verify(named.geometric(4, alpha="1/2"))


def test_a_mechanism_that_breaks_a_convex_constraint_is_refused(designed):
    certificate = designed.convex
    stricter = tuple(form + Fraction(1, 1000) for form in certificate.program.constraints)
    program = replace(certificate.program, constraints=stricter)
    assert not replace(certificate, program=program).verify(designed.mechanism)


def test_another_program_is_refused(designed):
    certificate = designed.convex
    nodes = certificate.program.nodes
    for program in (
        replace(certificate.program, objective=2 * certificate.program.objective),
        replace(certificate.program, nodes=nodes[:-1]),
        replace(certificate.program, nodes=(Node(Square(), (Affine.variable(0),)), *nodes[1:])),
    ):
        assert not replace(certificate, program=program).verify(designed.mechanism)


def test_the_linear_certificate_must_be_about_the_minorant(designed):
    certificate = designed.convex
    linear = certificate.linear
    for other in (
        replace(linear, bound=linear.bound + STEP),
        replace(linear, multipliers={}),
        replace(linear, properties=()),
        replace(linear, loss=Costs(linear.loss.table, worst_case=True)),
    ):
        assert not replace(certificate, linear=other).verify(designed.mechanism)


def test_a_mixture_costs_more_and_has_a_larger_gap(designed):
    """The certificate's parts, about a worse mechanism: still a proof, of a larger gap."""
    certificate = designed.convex
    half = Fraction(1, 2)
    worse = [
        [half * a + half * b for a, b in zip(*rows, strict=True)]
        for rows in zip(designed.mechanism.table, named.uniform(3).table, strict=True)
    ]
    mechanism = type(designed.mechanism)(worse, Privacy(alpha="1/2"))
    linear = replace(certificate.linear, objective=mechanism.loss(certificate.linear.loss))
    found = ConvexCertificate.of(
        certificate.program, mechanism, certificate.planes, certificate.multipliers, linear
    )
    assert found.verify(mechanism)
    assert found.bound == certificate.bound
    assert found.gap > certificate.gap
