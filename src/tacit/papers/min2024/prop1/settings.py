"""The settings and the entry of `min2024.prop1` (without torch)."""

from tacit.lab import Exhibit
from tacit.papers.min2024.bounds.settings import WIDE_K, WIDE_K1, Bounds

EXHIBITS = (
    Exhibit(
        id="min2024.prop1",
        title="Both classifiers generalise",
        where="Section 3, Proposition 1",
        claim="F and F^(p) classify clean samples but for an exponentially small probability",
        scales={
            "smoke": Bounds(K=(4,), K1=(2,), ratio=(1.0, 3.0), p=(1.0, 3.0), n=2000),
            # 12: both bounds are below 1 at K = 2, and errors are still seen
            "laptop": Bounds(ratio=(1.0, 3.0, 12.0, 30.0), p=(1.0, 2.0, 3.0, 4.0), n=200_000),
            "paper": Bounds(
                WIDE_K, WIDE_K1, (1.0, 2.0, 3.0, 5.0, 12.0, 30.0), (1.0, 2.0, 3.0, 4.0), n=2_000_000
            ),
        },
    ),
)
