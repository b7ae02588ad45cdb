"""The figure of `li2025.eps`: each bound with what it leaves, for both nets."""

import math

import xarray as xr
from matplotlib.figure import Figure

from tacit.papers.li2025._shared.bounds import induction, products
from tacit.papers.li2025._shared.lemmas import NETS, constants
from tacit.papers.li2025._shared.rooms import rooms
from tacit.papers.li2025.eps.claims import size_of
from tacit.papers.li2025.eps.settings import Small

TITLES = {"two": "2 labels (Appendix B)", "classes": "k labels (Appendix C)"}


def draw(data: xr.Dataset, config: Small) -> Figure:
    """Above the induction, where noises count as orthogonal; below what it rests on, with all products."""
    figure = Figure(figsize=(12.5, 8.6))
    panels = figure.subplots(2, 2)
    for column, net in enumerate(NETS):
        many, whole = (size_of(data, config, net, name) for name in ("apart", "exact"))
        at = constants(net, config.k)
        for row, (of, found) in enumerate(
            ((many, induction(many, at)), (whole, products(whole, at)))
        ):
            sizes = (
                f"$n$ = {of.n:,}, $d=10^{{{round(math.log10(of.d))}}}$, $\\epsilon$ = {of.eps:.2g}"
            )
            rooms(panels[row, column], list(found), f"{TITLES[net]}: {sizes}")
    figure.suptitle(
        f"dots: what {config.repeats} trainings take of each bound; bar's end: the most there could be; grey: "
        "an empty bound",
        fontsize="medium",
    )
    return figure
