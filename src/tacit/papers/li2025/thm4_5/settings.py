"""The settings and the entry of `li2025.thm4.5` (without torch)."""

from dataclasses import replace

from tacit.lab import Exhibit
from tacit.papers.li2025.sweeps.settings import PAPER, SMOKE, Sweep

EXHIBITS = (
    Exhibit(
        id="li2025.thm4.5",
        title="Feature averaging in sweeps of d, k, n and time",
        where="Theorem 4.5; Section 5.3; Appendix B.2",
        claim="weights near the class averages, radius of the order sqrt(d/k)",
        scales={
            "smoke": SMOKE,
            "laptop": replace(Sweep(), steps=300, points=300, repeats=5),
            "paper": PAPER,
        },
    ),
)
