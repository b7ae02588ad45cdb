"""The house style: every figure of tacit is drawn inside `house_style()`.

Exhibits use "C0", "C1", ... and set no fonts, sizes or colours of their own beyond that, so that
all figures of a report belong together, can be told apart without colour vision, and repeat bit
for bit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Okabe and Ito's colours, strongest contrast first; their yellow is too pale in print
CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK = "#222222"

_PARAMETERS: dict[Any, Any] = {
    "figure.figsize": (6.4, 3.8),
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "savefig.facecolor": "white",
    # glyphs as outlines look the same on every machine; the salt makes element names repeatable
    "svg.fonttype": "path",
    "svg.hashsalt": "tacit",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # the one font that matplotlib itself brings along
    "font.size": 9.5,
    "mathtext.fontset": "cm",
    "text.color": INK,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.labelsize": 10,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#555555",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "patch.linewidth": 0.7,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "image.cmap": "cividis",
    "errorbar.capsize": 2,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style; matplotlib's own settings come back afterwards.

    A user's own matplotlibrc does not show through: the same data give the same figure anywhere.
    """
    import matplotlib
    from cycler import cycler

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_PARAMETERS, "axes.prop_cycle": cycler(color=CYCLE)})
        yield
