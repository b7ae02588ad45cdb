"""Li, Pan, Lyu & Li 2025: gradient descent averages features, subclass labels decouple them."""

from __future__ import annotations

from tacit.lab import Paper
from tacit.papers.li2025.discovered.settings import EXHIBITS as DISCOVERED
from tacit.papers.li2025.fig1.settings import EXHIBITS as FIG1
from tacit.papers.li2025.fig2cd.settings import EXHIBITS as FIG2CD
from tacit.papers.li2025.fig3a.settings import EXHIBITS as FIG3A
from tacit.papers.li2025.fig10.settings import EXHIBITS as FIG10
from tacit.papers.li2025.lemma5.settings import EXHIBITS as LEMMA5
from tacit.papers.li2025.matrices.settings import EXHIBITS as MATRICES
from tacit.papers.li2025.prop4_8.settings import EXHIBITS as PROP4_8
from tacit.papers.li2025.story.settings import EXHIBITS as STORY
from tacit.papers.li2025.thm4_5.settings import EXHIBITS as THM4_5
from tacit.papers.li2025.thm4_6.settings import EXHIBITS as THM4_6
from tacit.papers.li2025.thm4_7.settings import EXHIBITS as THM4_7
from tacit.papers.li2025.thmD.settings import EXHIBITS as THMD

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

EXHIBITS = (
    *FIG1,
    *THMD,
    *PROP4_8,
    *MATRICES,
    *FIG3A,
    *LEMMA5,
    *THM4_5,
    *THM4_6,
    *THM4_7,
    *STORY,
    *DISCOVERED,
    *FIG2CD,
    *FIG10,
)
