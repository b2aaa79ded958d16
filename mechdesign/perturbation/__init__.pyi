from .design import (
    NoiseRule,
    NoiseRules,
    PerturbationCertificate,
    PerturbationDesign,
    PerturbationRequest,
    RoundedDesign,
    design_perturbation,
    rounded_to_keys,
)
from .disclosure import DeltaCurve, Disclosure, OneSided, Piece
from .joint import (
    CellGuess,
    JointDisclosure,
    KeyLeak,
    best_guess,
    joint_curve,
    joint_law,
    key_leak,
    scattered,
    spectrum,
)
from .table import PerturbationTable

__all__ = [
    "CellGuess",
    "DeltaCurve",
    "Disclosure",
    "JointDisclosure",
    "KeyLeak",
    "NoiseRule",
    "NoiseRules",
    "OneSided",
    "PerturbationCertificate",
    "PerturbationDesign",
    "PerturbationRequest",
    "PerturbationTable",
    "Piece",
    "RoundedDesign",
    "best_guess",
    "design_perturbation",
    "joint_curve",
    "joint_law",
    "key_leak",
    "rounded_to_keys",
    "scattered",
    "spectrum",
]
