"""The settings and the entry of `li2025.thm4.7` (without torch)."""

from dataclasses import replace

from tacit.lab import Exhibit
from tacit.papers.li2025.sweeps.settings import PAPER, SMOKE, Sweep

EXHIBITS = (
    Exhibit(
        id="li2025.thm4.7",
        title="Feature decoupling in sweeps of d, k, n and time",
        where="Theorem 4.7; Appendix C",
        claim="with subclass labels each neuron finds its feature, radius of the order sqrt(d)",
        scales={
            "smoke": replace(SMOKE, points=20, starts=5),
            "laptop": Sweep(
                k=(4, 8, 16), n=(100, 200, 400), steps=300, test=2000, repeats=5, starts=2000
            ),
            "paper": replace(PAPER, k=(4, 8, 16, 24)),
        },
    ),
)
