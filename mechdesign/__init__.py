"""Design, certify and deploy differentially private count mechanisms.

`mechdesign.local` designs for local privacy, `mechdesign.symbolic` for every alpha at once.
"""

from mechdesign import losses, named, properties
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
)
from mechdesign.mechanism import Audit, Mechanism
from mechdesign.privacy import Metric, Privacy
from mechdesign.properties import Property
from mechdesign.rows import Rows
from mechdesign.spread import Spread

__all__ = [
    "Audit",
    "Certificate",
    "CertificateRejected",
    "Design",
    "InexactNumber",
    "Infeasible",
    "InvalidCount",
    "InvalidFile",
    "InvalidMechanism",
    "InvalidPrior",
    "Mechanism",
    "MechanismError",
    "Metric",
    "NotSquare",
    "Privacy",
    "PrivacyViolation",
    "Property",
    "Rows",
    "SolverFailure",
    "Spread",
    "Verification",
    "design",
    "losses",
    "named",
    "properties",
]
