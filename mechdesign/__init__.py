"""Design, certify and deploy differentially private count mechanisms.

`mechdesign.local` designs for local privacy, `mechdesign.symbolic` for every alpha at once.
"""

from typing import TYPE_CHECKING

from mechdesign import losses, named, properties, requirements
from mechdesign.accounting.account import AlreadySpent, BudgetExceeded, ShuffledDays
from mechdesign.accounting.ledger import Ledger, LedgerChanged
from mechdesign.accounting.promises import ZCDP, ApproximateDP
from mechdesign.certificate import Certificate, Verification
from mechdesign.convex.certificate import ConvexCertificate
from mechdesign.error_distribution import ErrorDistribution
from mechdesign.exceptions import (
    CertificateRejected,
    DiskFull,
    InexactNumber,
    Infeasible,
    InvalidCount,
    InvalidExpression,
    InvalidFile,
    InvalidMechanism,
    InvalidPrior,
    InvalidTable,
    IrregularFile,
    MechanismError,
    NoRows,
    NotSquare,
    NoUnbiasedEstimate,
    PrivacyViolation,
    SolverFailure,
    TooLarge,
)
from mechdesign.explanation import Explanation, explain
from mechdesign.infeasibility import FarkasProof, Incompatible, Request
from mechdesign.lp.constraints import Constraints
from mechdesign.mechanism import Mechanism
from mechdesign.optimal import Design, design
from mechdesign.planning.planner import plan
from mechdesign.planning.ranking import Plan
from mechdesign.planning.search import Unreachable
from mechdesign.planning.task import InvalidRequest, UnknownTask
from mechdesign.privacy import Metric, Privacy
from mechdesign.properties import Property
from mechdesign.table import Audit
from mechdesign.unbiased_estimate import UnbiasedEstimate
from mechdesign.values import Bands, CountPairs, Counts, Values

__all__ = [
    "ZCDP",
    "AlreadySpent",
    "ApproximateDP",
    "Audit",
    "Bands",
    "BudgetExceeded",
    "Certificate",
    "CertificateRejected",
    "Constraints",
    "ConvexCertificate",
    "CountPairs",
    "Counts",
    "Design",
    "DiskFull",
    "ErrorDistribution",
    "Explanation",
    "FarkasProof",
    "Incompatible",
    "InexactNumber",
    "Infeasible",
    "InvalidCount",
    "InvalidExpression",
    "InvalidFile",
    "InvalidMechanism",
    "InvalidPrior",
    "InvalidRequest",
    "InvalidTable",
    "IrregularFile",
    "Ledger",
    "LedgerChanged",
    "Mechanism",
    "MechanismError",
    "Metric",
    "NoRows",
    "NoUnbiasedEstimate",
    "NotSquare",
    "Plan",
    "Privacy",
    "PrivacyViolation",
    "Property",
    "Request",
    "ShuffledDays",
    "SolverFailure",
    "TooLarge",
    "UnbiasedEstimate",
    "UnknownTask",
    "Unreachable",
    "Values",
    "Verification",
    "design",
    "explain",
    "losses",
    "named",
    "plan",
    "properties",
    "requirements",
]

__version__: str
"""The installed version, looked up when it is asked for."""

if not TYPE_CHECKING:  # a checker would take any misspelt name for a string

    def __getattr__(name):
        if name == "__version__":
            from importlib.metadata import version

            return version("mechdesign")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
