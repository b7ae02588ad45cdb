"""Bounds as a picture: the part of each that trainings take, and the most there could be."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from tacit.papers._shared.panels import THEORY
from tacit.papers.li2025._shared.bounds import Row, part_of, room_of

LEAST, MOST = 1e-10, 1e4


def rooms(axes: Axes, rows: Sequence[Row], title: str) -> None:
    """A line a bound, from what was measured (dots, one a training) to the most there could be (bar's end).

    All in parts of the bound, on a logarithmic axis. A bound that is beyond its bar's end is empty: grey.
    """
    for at, row in enumerate(rows):
        parts = np.clip(part_of(row), LEAST, MOST)
        room = min(max(room_of(row), LEAST), MOST)
        color = "0.6" if room <= 1 else "C3" if parts.max() > 1 else "C0"
        axes.plot([parts.min(), room], [at, at], color=color, linewidth=1, alpha=0.5)
        axes.plot(parts, np.full(len(parts), at), "o", color=color, markersize=4)
        axes.plot([room], [at], ">" if room >= MOST else "|", color=color, markersize=7)
    axes.axvline(1, **THEORY)
    axes.set_yticks(range(len(rows)), [f"{row.name}   {row.id}" for row in rows], fontsize=8)
    axes.set(xscale="log", xlim=(LEAST / 3, MOST * 3), ylim=(len(rows) - 0.4, -0.6))
    axes.set_xlabel("part of the bound (dashed: the bound)")
    axes.set_title(title, fontsize="medium")
    axes.grid(axis="y", visible=False)
