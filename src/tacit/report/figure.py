"""An exhibit's figure as files: vector for print, pixels for slides and chats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.base.files import write_whole
from tacit.report.style import house_style

if TYPE_CHECKING:
    from tacit.lab.runner import Sheet


def save_figure(folder: Path, sheet: Sheet) -> str:
    """Draw the exhibit into figure.svg and figure.png; returns the SVG's text.

    No date is stored, so the same data give the same files.
    """
    from matplotlib import pyplot

    with house_style():
        figure = sheet.order.exhibit.load().draw(sheet.data, sheet.order.config)
        try:
            write_whole(
                folder / "figure.svg",
                lambda stream: figure.savefig(stream, format="svg", metadata={"Date": None}),
            )
            write_whole(
                folder / "figure.png",
                lambda stream: figure.savefig(stream, format="png", metadata={"Software": None}),
            )
        finally:
            pyplot.close(figure)  # a figure made by plt.subplots is kept alive otherwise
    return (folder / "figure.svg").read_text(encoding="utf-8")
