"""Min & Vidal 2025 (poster): gradient flow provably learns robust classifiers."""

from __future__ import annotations

from tacit.lab import Paper
from tacit.papers.min2025.alpha0.settings import EXHIBITS as ALPHA0
from tacit.papers.min2025.learned.settings import EXHIBITS as LEARNED
from tacit.papers.min2025.persists.settings import EXHIBITS as PERSISTS
from tacit.papers.min2025.robust.settings import EXHIBITS as ROBUST
from tacit.papers.min2025.transition.settings import EXHIBITS as TRANSITION

PAPER = Paper(
    key="min2025",
    title="Gradient Flow Provably Learns Robust Classifiers for Orthonormal GMMs",
    authors="Hancheng Min and René Vidal",
    year=2025,
    bibtex="""@misc{min2025,
  title = {Gradient Flow Provably Learns Robust Classifiers for Orthonormal {GMM}s},
  author = {Min, Hancheng and Vidal, Ren{\\'e}},
  year  = {2025},
  note  = {Poster}
}""",
)

EXHIBITS = (
    *ROBUST,
    *ALPHA0,
    *PERSISTS,
    *LEARNED,
    *TRANSITION,
)
