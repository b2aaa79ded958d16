"""Typed errors: the same in every process, and none forgotten."""

import copy
import math
import pickle
from fractions import Fraction

import pytest

from mechdesign import (
    CertificateRejected,
    InexactNumber,
    Infeasible,
    InvalidCount,
    InvalidExpression,
    InvalidFile,
    InvalidMechanism,
    InvalidPrior,
    InvalidTable,
    MechanismError,
    NoRows,
    NotPure,
    NotSquare,
    NoUnbiasedEstimate,
    PrivacyViolation,
    SolverFailure,
    TooLarge,
)
from mechdesign.exceptions import (
    DeltaViolation,
    DiskFull,
    IrregularFile,
    TooFewReports,
    UnboundedRatio,
    UnstatedLikelihoods,
)

BIG = 10**400


ERRORS = [
    CertificateRejected("a reason"),
    DeltaViolation(Fraction(1, 3), Fraction(1, 4), (0, 1), Fraction(3), Fraction(2), 0),
    DiskFull("a.json"),
    IrregularFile("pipe"),
    InexactNumber("alpha", 0.9),
    InexactNumber("alpha", None),
    Infeasible("none"),
    TooLarge(10**5, 1e9, 1 << 40),
    TooLarge(10**5, 1e9, 1 << 40, "what to do"),
    InvalidCount(1, 7, 3),
    InvalidCount((0, 2), 10**5000, 3),
    InvalidExpression("not convex"),
    InvalidFile("cut short"),
    InvalidMechanism("column 0"),
    InvalidPrior("negative"),
    InvalidTable("line 3"),
    MechanismError(),
    NoRows("no rows"),
    NotPure("a delta"),
    NotSquare("2 x 3"),
    NoUnbiasedEstimate("rank 2"),
    PrivacyViolation(Fraction(3), Fraction(2), 0, (0, 1)),
    PrivacyViolation(math.inf, Fraction(BIG), 3, (2, 1)),
    SolverFailure("stopped"),
    TooFewReports("9 of 10"),
    UnboundedRatio("output 2"),
    UnstatedLikelihoods("Own"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_errors_travel_between_processes(error, protocol):
    """A process pool hands errors on by pickling them; attributes and message arrive unchanged."""
    for other in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error)):
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert other.args == error.args
        assert vars(other) == vars(error)


def test_every_typed_error_is_in_the_list():
    def below(kind):
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    assert {
        kind for kind in below(MechanismError) if kind.__module__ == MechanismError.__module__
    } == {type(error) for error in ERRORS}
