"""Schemas: the attributes of users, with labels, units and bins, and protocols that ask for them.

>>> import numpy as np
>>> schema = Schema([Numeric("age", low=0, high=120, whole=True, unit="years", missing="item")])
>>> schema.encode({"age": [44, None, 7]}).columns
(array([ 44, 121,   7]),)
"""

from frequency.schema.attribute import Attribute
from frequency.schema.categorical import Boolean, Categorical
from frequency.schema.dates import Dates
from frequency.schema.domain import Domain
from frequency.schema.draft import Draft, draft_schema
from frequency.schema.estimate import SurveyEstimate
from frequency.schema.numeric import Numeric
from frequency.schema.ordered import Ordered
from frequency.schema.schema import Encoded, Schema
from frequency.schema.survey import ClippedValues, Survey
from frequency.schema.text import Text

__all__ = [
    "Attribute",
    "Boolean",
    "Categorical",
    "ClippedValues",
    "Dates",
    "Domain",
    "Draft",
    "Encoded",
    "Numeric",
    "Ordered",
    "Schema",
    "Survey",
    "SurveyEstimate",
    "Text",
    "draft_schema",
]
