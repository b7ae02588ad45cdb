"""How a net is broken."""

from tacit.attack.apgd import apgd
from tacit.attack.attacked import Attacked
from tacit.attack.black_box import black_box
from tacit.attack.gradient import fgm, pgd
from tacit.attack.losses import cross_entropy, margin
from tacit.attack.norms import Norm, known_norm
from tacit.attack.rays import first_crossing
from tacit.attack.smooth import smooth_adv_pgd

__all__ = [
    "Attacked",
    "Norm",
    "apgd",
    "black_box",
    "cross_entropy",
    "fgm",
    "first_crossing",
    "known_norm",
    "margin",
    "pgd",
    "smooth_adv_pgd",
]
