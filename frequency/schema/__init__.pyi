from .attribute import Attribute, Boolean, Categorical, Text
from .column import MissingCode
from .domain import Domain
from .draft import Draft, draft_schema
from .estimate import SurveyEstimate
from .numeric import Dates, Numeric, Ordered, Ordinal
from .regression import FittedLine, least_squares
from .schema import Encoded, Schema
from .survey import ClippedValues, Survey

__all__ = [
    "Attribute",
    "Boolean",
    "Categorical",
    "ClippedValues",
    "Dates",
    "Domain",
    "Draft",
    "Encoded",
    "FittedLine",
    "MissingCode",
    "Numeric",
    "Ordered",
    "Ordinal",
    "Schema",
    "Survey",
    "SurveyEstimate",
    "Text",
    "draft_schema",
    "least_squares",
]
