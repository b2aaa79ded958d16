"""Mechanisms whose entries are rational functions of alpha.

Closed forms, and proofs for every alpha in (0, 1) at once.

The package has the named mechanisms; `explain` and `parametric`, which find the optimal designs of
every alpha (`mechdesign.symbolic.critical_regions`); the tables (`mechdesign.symbolic.table`);
their entries (`mechdesign.symbolic.rational_function`); proofs of privacy, composed of smaller ones
(`mechdesign.symbolic.privacy_proof`, `mechdesign.symbolic.proof_rules`); and the sets of alphas for
which a statement is true (`mechdesign.symbolic.semialgebraic`).

>>> geometric(4).audit().holds
True
>>> print(geometric(4).where("WH"))
0 < α ≤ 2/3
"""

from mechdesign.symbolic.closed_forms import (
    explicit_fair,
    geometric,
    hadamard,
    krr,
    optimized_unary,
    randomized_response,
    subset_selection,
    uniform,
)
from mechdesign.symbolic.constraints import NotPolynomial
from mechdesign.symbolic.critical_regions import CriticalRegion, Unproved, explain, parametric
from mechdesign.symbolic.one_bit_proof import Acceptance, OneBitProof
from mechdesign.symbolic.privacy_proof import PrivacyProof
from mechdesign.symbolic.proof_rules import (
    BudgetShare,
    CompositionProof,
    ExponentialProof,
    MixturePart,
    MixtureProof,
    ProcessedProof,
    PublicDrawProof,
)
from mechdesign.symbolic.randomiser import ItemLaw, Randomiser, ReportKind
from mechdesign.symbolic.rational_function import ALPHA, RationalFunction
from mechdesign.symbolic.semialgebraic import AlphaInterval, Region, Root
from mechdesign.symbolic.table import SymbolicAudit, SymbolicMechanism
from mechdesign.symbolic.table_proof import TableProof

__all__ = [
    "ALPHA",
    "Acceptance",
    "AlphaInterval",
    "BudgetShare",
    "CompositionProof",
    "CriticalRegion",
    "ExponentialProof",
    "ItemLaw",
    "MixturePart",
    "MixtureProof",
    "NotPolynomial",
    "OneBitProof",
    "PrivacyProof",
    "ProcessedProof",
    "PublicDrawProof",
    "Randomiser",
    "RationalFunction",
    "Region",
    "ReportKind",
    "Root",
    "SymbolicAudit",
    "SymbolicMechanism",
    "TableProof",
    "Unproved",
    "explain",
    "explicit_fair",
    "geometric",
    "hadamard",
    "krr",
    "optimized_unary",
    "parametric",
    "randomized_response",
    "subset_selection",
    "uniform",
]
