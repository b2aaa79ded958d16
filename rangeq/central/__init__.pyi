from .answers import ConfidenceInterval, Number, TableAnswers
from .branching import Branching, Branchings, best_branching
from .estimate import CentralEstimate
from .hierarchy import CentralFlat, Hierarchy, Wavelet
from .inputs import (
    LARGEST_DOMAIN,
    LARGEST_TOTAL,
    InvalidHistogram,
    InvalidRange,
    MarginalCounts,
    count_cells,
    count_marginals,
)
from .keys import GaussianKeys, KeyRule, OptimalKeys, key_rules
from .matrix_mechanism.adaptive import AdaptiveMarginals
from .matrix_mechanism.dense_strategy import DenseStrategy, ProductStrategy
from .matrix_mechanism.design import StrategyDesign, least_cell_variance, workload_optimal
from .matrix_mechanism.grouped_strategy import GroupedStrategy
from .matrix_mechanism.marginal_strategy import MarginalStrategy
from .matrix_mechanism.mechanism import MatrixEstimate, MatrixMechanism
from .matrix_mechanism.posterior_design import posterior_optimal
from .matrix_mechanism.residual_strategy import ResidualStrategy
from .matrix_mechanism.spectral_strategy import SpectralStrategy
from .matrix_mechanism.staircase_strategy import StaircaseStrategy
from .matrix_mechanism.strategy import Strategy, UnanswerableQuery
from .matrix_mechanism.strategy_file import load_strategy, save_strategy
from .matrix_mechanism.workload import InvalidWorkload, Workload
from .mechanism import LEAST_EPSILON, Budget, CentralMechanism
from .persons import NumbersOfRows, RowsOfPersons, for_each_row
from .posterior import NoPosterior, PosteriorEstimate
from .quantile_release import QuantileRelease, TreeQuantiles, quantiles
from .region_release import RegionEstimate, RegionRelease, RegionStatement, release_regions
from .regions import Region, Regions
from .release import Release, load_release
from .released_keys import DistinctValues, KeysOfPersons, ReleasedKeys, count_keys
from .released_quantiles import ReleasedQuantiles
from .stream import CountStream, StreamEstimate
from .sums import GroupedSums

__all__ = [
    "LARGEST_DOMAIN",
    "LARGEST_TOTAL",
    "LEAST_EPSILON",
    "AdaptiveMarginals",
    "Branching",
    "Branchings",
    "Budget",
    "CentralEstimate",
    "CentralFlat",
    "CentralMechanism",
    "ConfidenceInterval",
    "CountStream",
    "DenseStrategy",
    "DistinctValues",
    "GaussianKeys",
    "GroupedStrategy",
    "GroupedSums",
    "Hierarchy",
    "InvalidHistogram",
    "InvalidRange",
    "InvalidWorkload",
    "KeyRule",
    "KeysOfPersons",
    "MarginalCounts",
    "MarginalStrategy",
    "MatrixEstimate",
    "MatrixMechanism",
    "NoPosterior",
    "Number",
    "NumbersOfRows",
    "OptimalKeys",
    "PosteriorEstimate",
    "ProductStrategy",
    "QuantileRelease",
    "Region",
    "RegionEstimate",
    "RegionRelease",
    "RegionStatement",
    "Regions",
    "Release",
    "ReleasedKeys",
    "ReleasedQuantiles",
    "ResidualStrategy",
    "RowsOfPersons",
    "SpectralStrategy",
    "StaircaseStrategy",
    "Strategy",
    "StrategyDesign",
    "StreamEstimate",
    "TableAnswers",
    "TreeQuantiles",
    "UnanswerableQuery",
    "Wavelet",
    "Workload",
    "best_branching",
    "count_cells",
    "count_keys",
    "count_marginals",
    "for_each_row",
    "key_rules",
    "least_cell_variance",
    "load_release",
    "load_strategy",
    "posterior_optimal",
    "quantiles",
    "release_regions",
    "save_strategy",
    "workload_optimal",
]
