"""Min & Vidal 2025 (poster): gradient flow provably learns robust classifiers."""

from tacit.lab import Paper, exhibits_of

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

EXHIBITS = exhibits_of(__name__, "robust", "alpha0", "persists", "learned", "transition", "limits")
