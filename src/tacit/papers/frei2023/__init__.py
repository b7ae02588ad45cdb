"""Frei, Vardi, Bartlett & Srebro 2023: gradient flow generalises and is not robust on clusters."""

from __future__ import annotations

from tacit.lab import Paper
from tacit.papers.frei2023.assumption.settings import EXHIBITS as ASSUMPTION
from tacit.papers.frei2023.beyond.settings import EXHIBITS as BEYOND
from tacit.papers.frei2023.lemma2_1.settings import EXHIBITS as LEMMA2_1
from tacit.papers.frei2023.nn1.settings import EXHIBITS as NN1
from tacit.papers.frei2023.thm2_1.settings import EXHIBITS as THM2_1
from tacit.papers.frei2023.thm3_1.settings import EXHIBITS as THM3_1
from tacit.papers.frei2023.thm4_1.settings import EXHIBITS as THM4_1
from tacit.papers.frei2023.thm4_2.settings import EXHIBITS as THM4_2

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

EXHIBITS = (
    *ASSUMPTION,
    *LEMMA2_1,
    *THM4_1,
    *NN1,
    *THM2_1,
    *THM3_1,
    *THM4_2,
    *BEYOND,
)
