"""Allen-Zhu & Li 2020: clean training hides a dense mixture in every neuron, adversarial training removes it."""

from tacit.lab import Paper, exhibits_of

PAPER = Paper(
    key="allenzhu2020",
    title="Feature Purification: How Adversarial Training Performs Robust Deep Learning",
    authors="Zeyuan Allen-Zhu and Yuanzhi Li",
    year=2020,
    bibtex="""@misc{allenzhu2020,
  title         = {Feature Purification: How Adversarial Training Performs Robust Deep Learning},
  author        = {Allen-Zhu, Zeyuan and Li, Yuanzhi},
  year          = {2020},
  eprint        = {2005.10190},
  archiveprefix = {arXiv}
}""",
)

EXHIBITS = exhibits_of(
    __name__,
    "fig3",
    "lottery",  # keeps the clean nets, which it follows step by step, for those below
    "thm5_1",
    "thm5_2",
    "thm5_3",
    "angles",
    "transfer",
    "from_pure",
    "thm5_4",
    "thm5_6",
    "scaling",
    "fig8",  # keeps AlexNet's clean net, which it follows epoch by epoch, for those below
    "fig1",
    "fig9",
    "fig2",
    "fig11",
    "table1",
    "fig4",
    "fig5",
    "fig7",
    "fig10",
    "fig12",
    "fig13",
)
