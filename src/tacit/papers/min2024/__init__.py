"""Min & Vidal 2024: neurons that learn class averages, and an activation that learns the centres."""

from tacit.lab import Paper, exhibits_of

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

EXHIBITS = exhibits_of(
    __name__,
    "claim",
    "prop1",
    "thm1",
    "thm3",
    "tails",
    "fig7",
    "fig1",
    "fig2",
    "fig2_sgd",
    "alg1",
    "lemma1",
    "thm2",
    "after_thm2",
    "fig3",
    "table1",
    "fig4",
    "table1_strict",
    "overstated",
    "overtraining",
)
