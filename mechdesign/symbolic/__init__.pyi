from .closed_forms import (
    explicit_fair,
    geometric,
    hadamard,
    krr,
    optimized_unary,
    randomized_response,
    subset_selection,
    uniform,
)
from .critical_regions import CriticalRegion, Unproved, explain, parametric
from .privacy_proof import Acceptance, OneBitProof, PrivacyProof
from .proof_rules import (
    BudgetShare,
    CompositionProof,
    ExponentialProof,
    ItemLaw,
    MixturePart,
    MixtureProof,
    ProcessedProof,
    PublicDrawProof,
    Randomiser,
    ReportKind,
)
from .semialgebraic import ALPHA, AlphaInterval, RationalFunction, Region, Root
from .table import NotPolynomial, SymbolicAudit, SymbolicMechanism
from .table_proof import TableProof

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
