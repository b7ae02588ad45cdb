"""Min & Vidal 2024: neurons that learn class averages, and an activation that learns the centres."""

from __future__ import annotations

from tacit.lab import Paper
from tacit.papers.min2024.alg1.settings import EXHIBITS as ALG1
from tacit.papers.min2024.claim.settings import EXHIBITS as CLAIM
from tacit.papers.min2024.fig1.settings import EXHIBITS as FIG1
from tacit.papers.min2024.fig2.settings import EXHIBITS as FIG2
from tacit.papers.min2024.fig3.settings import EXHIBITS as FIG3
from tacit.papers.min2024.fig4.settings import EXHIBITS as FIG4
from tacit.papers.min2024.fig7.settings import EXHIBITS as FIG7
from tacit.papers.min2024.lemma1.settings import EXHIBITS as LEMMA1
from tacit.papers.min2024.prop1.settings import EXHIBITS as PROP1
from tacit.papers.min2024.table1.settings import EXHIBITS as TABLE1
from tacit.papers.min2024.table1_strict.settings import EXHIBITS as TABLE1_STRICT
from tacit.papers.min2024.thm1.settings import EXHIBITS as THM1
from tacit.papers.min2024.thm2.settings import EXHIBITS as THM2
from tacit.papers.min2024.thm3.settings import EXHIBITS as THM3

PAPER = Paper(
    key="min2024",
    title="Can Implicit Bias Imply Adversarial Robustness?",
    authors="Hancheng Min and René Vidal",
    year=2024,
    bibtex="""@inproceedings{min2024,
  title     = {Can Implicit Bias Imply Adversarial Robustness?},
  author    = {Min, Hancheng and Vidal, Ren{\\'e}},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}""",
)

EXHIBITS = (
    *CLAIM,
    *PROP1,
    *THM1,
    *THM3,
    *FIG7,
    *FIG1,
    *FIG2,
    *ALG1,
    *LEMMA1,
    *THM2,
    *FIG3,
    *TABLE1,
    *FIG4,
    *TABLE1_STRICT,
)
