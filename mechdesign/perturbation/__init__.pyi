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
from .table import PerturbationTable

__all__ = [
    "DeltaCurve",
    "Disclosure",
    "NoiseRule",
    "NoiseRules",
    "OneSided",
    "PerturbationCertificate",
    "PerturbationDesign",
    "PerturbationRequest",
    "PerturbationTable",
    "Piece",
    "RoundedDesign",
    "design_perturbation",
    "rounded_to_keys",
]
