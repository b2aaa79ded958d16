from .error_correcting_codes import Code, walkable, walked
from .exact_draws import (
    WORD,
    WORD_BITS,
    TruthOrLie,
    UnaryBits,
    bernoulli,
    bernoulli_bits,
    chances,
    root,
    uniform,
)
from .finite_field import VectorSpace, best_order, binary_basis, space, walsh_hadamard
from .hash_functions import FEW, MOST_FUNCTIONS, Coins, LinearHash, PublicBits, features

__all__ = [
    "FEW",
    "MOST_FUNCTIONS",
    "WORD",
    "WORD_BITS",
    "Code",
    "Coins",
    "LinearHash",
    "PublicBits",
    "TruthOrLie",
    "UnaryBits",
    "VectorSpace",
    "bernoulli",
    "bernoulli_bits",
    "best_order",
    "binary_basis",
    "chances",
    "features",
    "root",
    "space",
    "uniform",
    "walkable",
    "walked",
    "walsh_hadamard",
]
