from .association import chi_square, chow_liu, mutual_information, pearson
from .calm import CALM, Domain
from .consistency import consistent, measurements, to_mbi
from .estimate import FittedEstimate, MarginalEstimate
from .expectation_maximisation import InpEM
from .fourier import InpHT
from .prediction import LikelihoodEstimate, most_likely
from .protocol import MarginalProtocol
from .views import MargHT, MargPS, MargRR
from .whole_record import InpHTCMS, InpOLH, InpPS, InpRR

__all__ = [
    "CALM",
    "Domain",
    "FittedEstimate",
    "InpEM",
    "InpHT",
    "InpHTCMS",
    "InpOLH",
    "InpPS",
    "InpRR",
    "LikelihoodEstimate",
    "MargHT",
    "MargPS",
    "MargRR",
    "MarginalEstimate",
    "MarginalProtocol",
    "chi_square",
    "chow_liu",
    "consistent",
    "measurements",
    "most_likely",
    "mutual_information",
    "pearson",
    "to_mbi",
]
