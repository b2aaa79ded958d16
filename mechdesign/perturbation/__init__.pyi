from .alternatives import (
    ComparedTable,
    PerturbationComparison,
    compare_perturbation,
    rounding_table,
)
from .application import (
    PerturbedTable,
    draw_record_keys,
    perturb,
    read_people,
    write_with_keys,
)
from .attack import CellGuess, best_guess, best_guess_of_table, true_count
from .design import (
    PerturbationCertificate,
    PerturbationDesign,
    design_perturbation,
    rounded_to_keys,
)
from .disclosure import DeltaCurve, Disclosure, OneSided, Piece
from .joint import JointDisclosure, joint_curve, joint_law
from .key_assignment import KeyLeak, key_leak, scattered, spectrum
from .noise_rules import NoiseRule, NoiseRules, PerturbationRequest
from .rounding import RoundedDesign, Unroundable
from .table import PerturbationTable

__all__ = [
    "CellGuess",
    "ComparedTable",
    "DeltaCurve",
    "Disclosure",
    "JointDisclosure",
    "KeyLeak",
    "NoiseRule",
    "NoiseRules",
    "OneSided",
    "PerturbationCertificate",
    "PerturbationComparison",
    "PerturbationDesign",
    "PerturbationRequest",
    "PerturbationTable",
    "PerturbedTable",
    "Piece",
    "RoundedDesign",
    "Unroundable",
    "best_guess",
    "best_guess_of_table",
    "compare_perturbation",
    "design_perturbation",
    "draw_record_keys",
    "joint_curve",
    "joint_law",
    "key_leak",
    "perturb",
    "read_people",
    "rounded_to_keys",
    "rounding_table",
    "scattered",
    "spectrum",
    "true_count",
    "write_with_keys",
]
