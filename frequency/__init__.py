"""Frequency oracles: counts of categorical data under local differential privacy.

>>> import numpy as np
>>> oracle = GRR(domain=4, epsilon=2.0)
>>> reports = oracle.privatize([0, 1, 1, 3], rng=np.random.default_rng(1))  # on the users' devices
>>> estimate = oracle.estimate(oracle.aggregate(reports))  # on the server
>>> estimate.n
4
"""

from frequency import postprocess
from frequency.core.aggregate import Aggregate
from frequency.core.answer import Answer, of_samples
from frequency.core.estimate import Estimate
from frequency.core.oracle import Oracle
from frequency.exceptions import (
    FrequencyError,
    IncompatibleAggregate,
    InvalidCell,
    InvalidEstimates,
    InvalidQuestion,
    InvalidReport,
    InvalidValue,
    NotIdentifiable,
    UnknownColumn,
    UnknownVariance,
)
from frequency.measured_errors import MeasuredErrors, measure_errors
from frequency.oracles.count_mean_sketch import CountMeanSketch, HadamardCountMeanSketch
from frequency.oracles.hadamard_response import HRR
from frequency.oracles.johnson_lindenstrauss import JLOracle
from frequency.oracles.local_hashing import OLH
from frequency.oracles.projective_geometry import ProjectiveGeometry
from frequency.oracles.randomized_response import GRR, RR
from frequency.oracles.subset_selection import SubsetSelection
from frequency.oracles.tabular_response import Tabular
from frequency.oracles.unary_encoding import OUE, SUE
from frequency.schema import (
    Boolean,
    Categorical,
    Dates,
    Numeric,
    Schema,
    Survey,
    SurveyEstimate,
    Text,
)
from frequency.survey_plan import SurveyPlan, plan_survey

__all__ = [
    "GRR",
    "HRR",
    "OLH",
    "OUE",
    "RR",
    "SUE",
    "Aggregate",
    "Answer",
    "Boolean",
    "Categorical",
    "CountMeanSketch",
    "Dates",
    "Estimate",
    "FrequencyError",
    "HadamardCountMeanSketch",
    "IncompatibleAggregate",
    "InvalidCell",
    "InvalidEstimates",
    "InvalidQuestion",
    "InvalidReport",
    "InvalidValue",
    "JLOracle",
    "MeasuredErrors",
    "NotIdentifiable",
    "Numeric",
    "Oracle",
    "ProjectiveGeometry",
    "Schema",
    "SubsetSelection",
    "Survey",
    "SurveyEstimate",
    "SurveyPlan",
    "Tabular",
    "Text",
    "UnknownColumn",
    "UnknownVariance",
    "measure_errors",
    "of_samples",
    "plan_survey",
    "postprocess",
]
