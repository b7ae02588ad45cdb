"""How to cite: tacit itself, and the papers whose claims were run."""

from collections.abc import Iterable

from tacit.lab.exhibit import Paper
from tacit.version import __version__

TACIT = f"""@software{{tacit,
  title   = {{tacit: a laboratory for the implicit bias of gradient training}},
  author  = {{{{The tacit founders}}}},
  version = {{{__version__}}},
  year    = {{2026}}
}}"""


def bibliography(papers: Iterable[Paper]) -> str:
    """BibTeX of tacit and of the papers, in that order."""
    return "\n\n".join([TACIT, *(paper.bibtex.strip() for paper in papers)])
