"""Frei, Vardi, Bartlett & Srebro 2023: gradient flow generalises and is not robust on clusters."""

from tacit.lab import Paper, exhibits_of

PAPER = Paper(
    key="frei2023",
    title="The Double-Edged Sword of Implicit Bias: Generalization vs. Robustness in ReLU Networks",
    authors="Spencer Frei, Gal Vardi, Peter L. Bartlett and Nathan Srebro",
    year=2023,
    bibtex="""@inproceedings{frei2023,
  title     = {The Double-Edged Sword of Implicit Bias: Generalization vs. Robustness in {ReLU}
               Networks},
  author    = {Frei, Spencer and Vardi, Gal and Bartlett, Peter L. and Srebro, Nathan},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2023}
}""",
)

EXHIBITS = exhibits_of(
    __name__,
    "assumption",
    "lemma2_1",
    "thm4_1",
    "nn1",
    "thm2_1",
    "thm3_1",
    "thm4_2",
    "beyond",
    "every_kkt",
    "remarks",
)
