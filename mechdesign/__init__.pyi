from . import losses, named, properties, requirements
from .accounting.account import AlreadySpent, BudgetExceeded, ShuffledDays
from .accounting.ledger import Ledger, LedgerChanged
from .accounting.promises import ZCDP, ApproximateDP
from .approximate_privacy import ApproximatePrivacy
from .convex.certificate import ConvexCertificate
from .exceptions import (
    CertificateRejected,
    DeltaViolation,
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
    NotPure,
    NotSquare,
    NoUnbiasedEstimate,
    PrivacyViolation,
    SolverFailure,
    TooLarge,
)
from .lp.constraints import Constraints
from .mechanism.explanation import Explanation, explain
from .mechanism.mechanism import Mechanism
from .mechanism.table import Audit, DeltaAudit, ErrorDistribution
from .mechanism.unbiased_estimate import UnbiasedEstimate
from .mechanism.values import Bands, CountPairs, Counts, Values
from .optimisation.certificate import Certificate, Verification
from .optimisation.infeasibility import FarkasProof, Incompatible, Request
from .optimisation.optimal import Design, design
from .planning.planner import plan
from .planning.ranking import Plan
from .planning.task import InvalidRequest, UnknownTask
from .planning.trust import Unreachable
from .privacy import Metric, Privacy
from .properties import Property

__all__ = [
    "ZCDP",
    "AlreadySpent",
    "ApproximateDP",
    "ApproximatePrivacy",
    "Audit",
    "Bands",
    "BudgetExceeded",
    "Certificate",
    "CertificateRejected",
    "Constraints",
    "ConvexCertificate",
    "CountPairs",
    "Counts",
    "DeltaAudit",
    "DeltaViolation",
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
    "NotPure",
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
