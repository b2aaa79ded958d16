"""The contracts of all oracles, by their names, for tests that need their twins.

Test classes that a test module imports would be collected there again; from here they are not.
"""

from tests.frequency.oracles.test_affine_selection import TestAffineSelection
from tests.frequency.oracles.test_count_mean_sketch import (
    TestCountMeanSketch,
    TestHadamardCountMeanSketch,
)
from tests.frequency.oracles.test_hadamard_response import TestHRR1, TestHRR2, TestHRR3
from tests.frequency.oracles.test_johnson_lindenstrauss import TestJLOracle
from tests.frequency.oracles.test_local_hashing import TestOLH
from tests.frequency.oracles.test_projective_geometry import TestProjectiveGeometry
from tests.frequency.oracles.test_randomized_response import TestGRR, TestRR
from tests.frequency.oracles.test_subset_selection import TestSubsetSelection
from tests.frequency.oracles.test_tabular_response import (
    TestTabularGeometric,
    TestTabularKRR,
    TestTabularRectangular,
)
from tests.frequency.oracles.test_unary_encoding import TestOUE, TestSUE

__all__ = [
    "TestAffineSelection",
    "TestCountMeanSketch",
    "TestGRR",
    "TestHRR1",
    "TestHRR2",
    "TestHRR3",
    "TestHadamardCountMeanSketch",
    "TestJLOracle",
    "TestOLH",
    "TestOUE",
    "TestProjectiveGeometry",
    "TestRR",
    "TestSUE",
    "TestSubsetSelection",
    "TestTabularGeometric",
    "TestTabularKRR",
    "TestTabularRectangular",
]
