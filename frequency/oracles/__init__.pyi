from .affine_selection import AffineSelection
from .count_mean_sketch import CountMeanSketch, HadamardCountMeanSketch, JLOracle, checked_size
from .hadamard_response import HRR, SignChannel
from .local_hashing import OLH
from .projective_geometry import ProjectiveGeometry
from .randomized_response import GRR, NAMED, OracleChoice, choices_of, name_of, oracle_over
from .subset_selection import SubsetSelection
from .unary_encoding import OUE, SUE, UnaryEncoding, bits_at, column_sums, packed, symmetric_proof

__all__ = [
    "GRR",
    "HRR",
    "NAMED",
    "OLH",
    "OUE",
    "SUE",
    "AffineSelection",
    "CountMeanSketch",
    "HadamardCountMeanSketch",
    "JLOracle",
    "OracleChoice",
    "ProjectiveGeometry",
    "SignChannel",
    "SubsetSelection",
    "UnaryEncoding",
    "bits_at",
    "checked_size",
    "choices_of",
    "column_sums",
    "name_of",
    "oracle_over",
    "packed",
    "symmetric_proof",
]
