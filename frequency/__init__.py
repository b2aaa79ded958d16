"""Count categorical data from people who trust nobody: frequency oracles under local differential
privacy.

>>> import numpy as np
>>> oracle = GRR(domain=4, epsilon=2.0)
>>> reports = oracle.privatize([0, 1, 1, 3], rng=np.random.default_rng(1))  # on the users' devices
>>> estimate = oracle.estimate(oracle.aggregate(reports))  # on the server
>>> estimate.n
4
"""

from frequency import postprocess
from frequency.aggregate import Aggregate
from frequency.choose import Candidate, Choice, choose
from frequency.estimate import Estimate
from frequency.exceptions import (
    FrequencyError,
    IncompatibleAggregate,
    InvalidEstimates,
    InvalidReport,
    InvalidValue,
    NotIdentifiable,
)
from frequency.geometry import ProjectiveGeometry
from frequency.grr import GRR, RR
from frequency.hadamard import HRR
from frequency.olh import OLH
from frequency.oracle import Oracle
from frequency.projection import JLOracle
from frequency.sketch import CountMeanSketch, HadamardCountMeanSketch
from frequency.subset import SubsetSelection
from frequency.tabular import Tabular
from frequency.unary import OUE, SUE

__all__ = [
    "GRR",
    "HRR",
    "OLH",
    "OUE",
    "RR",
    "SUE",
    "Aggregate",
    "Candidate",
    "Choice",
    "CountMeanSketch",
    "Estimate",
    "FrequencyError",
    "HadamardCountMeanSketch",
    "IncompatibleAggregate",
    "InvalidEstimates",
    "InvalidReport",
    "InvalidValue",
    "JLOracle",
    "NotIdentifiable",
    "Oracle",
    "ProjectiveGeometry",
    "SubsetSelection",
    "Tabular",
    "choose",
    "postprocess",
]
