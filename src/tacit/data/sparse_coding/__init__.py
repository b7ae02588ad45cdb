"""x = M z + xi with a sparse hidden vector z: the data of allenzhu2020 (Section 2)."""

from tacit.data.sparse_coding.dictionary import (
    block_dictionary,
    coherence,
    identity_dictionary,
    incoherent_dictionary,
    matrix_norms,
    unitary_dictionary,
)
from tacit.data.sparse_coding.law import Assumption21, HiddenLaw, Piece, Spike, two_level_law
from tacit.data.sparse_coding.model import (
    SparseCoding,
    SparseCodingWarning,
    SparseSamples,
    checked_model,
    sparse_coding,
    too_dense,
)

__all__ = [
    "Assumption21",
    "HiddenLaw",
    "Piece",
    "SparseCoding",
    "SparseCodingWarning",
    "SparseSamples",
    "Spike",
    "block_dictionary",
    "checked_model",
    "coherence",
    "identity_dictionary",
    "incoherent_dictionary",
    "matrix_norms",
    "sparse_coding",
    "too_dense",
    "two_level_law",
    "unitary_dictionary",
]
