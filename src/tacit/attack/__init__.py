"""How a net is broken."""

from tacit.attack.ball.apgd import apgd
from tacit.attack.ball.black_box import black_box
from tacit.attack.ball.gradient import fgm, pgd
from tacit.attack.ball.smooth import smooth_adv_pgd
from tacit.attack.ball.square import square
from tacit.attack.ball.task import Attacked
from tacit.attack.inner import Ball, perturbation
from tacit.attack.losses import cross_entropy, margin
from tacit.attack.norms import Norm, known_norm
from tacit.attack.shortest.fab import fab
from tacit.attack.shortest.minimal import Found, minimal
from tacit.attack.shortest.rays import first_crossing
from tacit.attack.shortest.reduce import Reduced, reduce_net
from tacit.attack.universal import (
    allenzhu2020_dense,
    broken_by,
    frei2023_z,
    learned_universal,
    li2025_rho,
    min2024_d0,
)

__all__ = [
    "Attacked",
    "Ball",
    "Found",
    "Norm",
    "Reduced",
    "allenzhu2020_dense",
    "apgd",
    "black_box",
    "broken_by",
    "cross_entropy",
    "fab",
    "fgm",
    "first_crossing",
    "frei2023_z",
    "known_norm",
    "learned_universal",
    "li2025_rho",
    "margin",
    "min2024_d0",
    "minimal",
    "perturbation",
    "pgd",
    "reduce_net",
    "smooth_adv_pgd",
    "square",
]
