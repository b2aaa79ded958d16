"""Design, certify and deploy differentially private count mechanisms.

`mechdesign.local` designs for local privacy, `mechdesign.symbolic` for every alpha at once.
"""

from typing import TYPE_CHECKING

from mechdesign import losses, named, properties
from mechdesign.budget import AlreadySpent, BudgetExceeded, Ledger, LedgerChanged
from mechdesign.certificate import Certificate, Verification
from mechdesign.design import Design, design
from mechdesign.exceptions import (
    CertificateRejected,
    InexactNumber,
    Infeasible,
    InvalidCount,
    InvalidFile,
    InvalidMechanism,
    InvalidPrior,
    MechanismError,
    NotSquare,
    PrivacyViolation,
    SolverFailure,
    TooLarge,
)
from mechdesign.mechanism import Audit, Mechanism
from mechdesign.planner import InvalidRequest, Plan, UnknownTask, Unreachable, plan
from mechdesign.privacy import Metric, Privacy
from mechdesign.properties import Property
from mechdesign.rows import Rows
from mechdesign.spread import Spread

__all__ = [
    "AlreadySpent",
    "Audit",
    "BudgetExceeded",
    "Certificate",
    "CertificateRejected",
    "Design",
    "InexactNumber",
    "Infeasible",
    "InvalidCount",
    "InvalidFile",
    "InvalidMechanism",
    "InvalidPrior",
    "InvalidRequest",
    "Ledger",
    "LedgerChanged",
    "Mechanism",
    "MechanismError",
    "Metric",
    "NotSquare",
    "Plan",
    "Privacy",
    "PrivacyViolation",
    "Property",
    "Rows",
    "SolverFailure",
    "Spread",
    "TooLarge",
    "UnknownTask",
    "Unreachable",
    "Verification",
    "design",
    "losses",
    "named",
    "plan",
    "properties",
]

__version__: str
"""The installed version, looked up when it is asked for."""

if not TYPE_CHECKING:  # a checker would take any misspelt name for a string

    def __getattr__(name):
        if name == "__version__":
            from importlib.metadata import version

            return version("mechdesign")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
