from . import postprocess
from .core.aggregate import Aggregate
from .core.answer import Answer, Between, difference, of_samples, ratio, share
from .core.estimate import Estimate
from .core.oracle import Oracle
from .exceptions import (
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
from .oracles.affine_selection import AffineSelection
from .oracles.count_mean_sketch import CountMeanSketch, HadamardCountMeanSketch, JLOracle
from .oracles.hadamard_response import HRR
from .oracles.local_hashing import OLH
from .oracles.projective_geometry import ProjectiveGeometry
from .oracles.randomized_response import GRR, RR, Tabular
from .oracles.subset_selection import SubsetSelection
from .oracles.unary_encoding import OUE, SUE
from .planning.measured_errors import MeasuredErrors, measure_errors
from .planning.survey_plan import SurveyPlan, plan_survey
from .schema import (
    Boolean,
    Categorical,
    Dates,
    Numeric,
    Ordinal,
    Schema,
    Survey,
    SurveyEstimate,
    Text,
)

__all__ = [
    "GRR",
    "HRR",
    "OLH",
    "OUE",
    "RR",
    "SUE",
    "AffineSelection",
    "Aggregate",
    "Answer",
    "Between",
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
    "Ordinal",
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
    "difference",
    "measure_errors",
    "of_samples",
    "plan_survey",
    "postprocess",
    "ratio",
    "share",
]
