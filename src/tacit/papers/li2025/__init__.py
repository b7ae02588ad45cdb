"""Li, Pan, Lyu & Li 2025: gradient descent averages features, subclass labels decouple them."""

from tacit.lab import Paper, exhibits_of

PAPER = Paper(
    key="li2025",
    title="Feature Averaging: An Implicit Bias of Gradient Descent Leading to Non-Robustness in "
    "Neural Networks",
    authors="Binghui Li, Zhixuan Pan, Kaifeng Lyu and Jian Li",
    year=2025,
    bibtex="""@inproceedings{li2025,
  title     = {Feature Averaging: An Implicit Bias of Gradient Descent Leading to Non-Robustness
               in Neural Networks},
  author    = {Li, Binghui and Pan, Zhixuan and Lyu, Kaifeng and Li, Jian},
  booktitle = {International Conference on Learning Representations},
  year      = {2025}
}""",
)

EXHIBITS = exhibits_of(
    __name__,
    "fig1",
    "thmD",
    "prop4_8",
    "matrices",
    "fig3a",
    "fig3b",
    "lemma5",
    "appendixC",
    "eps",
    "thm4_5",
    "thm4_6",
    "thm4_7",
    "story",
    "deep_story",
    "discovered",
    "phase",
    "fig2cd",
    "fig10",
)
