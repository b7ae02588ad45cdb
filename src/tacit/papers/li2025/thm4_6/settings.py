"""The settings and the entry of `li2025.thm4.6` (without torch)."""

from dataclasses import replace

from tacit.lab import Exhibit
from tacit.papers.li2025.sweeps.settings import PAPER, SMOKE, Sweep

EXHIBITS = (
    Exhibit(
        id="li2025.thm4.6",
        title="The trained net against C f_FA on the sphere",
        where="Theorem 4.6; Appendix B.3",
        claim="inf_C sup |C f_FA - f| over ||x|| = sqrt(d) is o(1)",
        scales={
            "smoke": replace(SMOKE, m=2, time=(1.0, 10.0)),
            "laptop": Sweep(repeats=5),
            "paper": PAPER,
        },
    ),
)
