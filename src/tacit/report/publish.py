"""What a finished run is given to be read by: its figure and its report."""

from collections.abc import Sequence
from pathlib import Path

from tacit.base.files import write_text
from tacit.lab.record import RunRecord
from tacit.lab.registry import catalogue
from tacit.lab.runner import Sheet
from tacit.report.animation import save_animation
from tacit.report.figure import save_figure
from tacit.report.html import run_page, summary_page


def publish_run(folder: Path, sheet: Sheet) -> None:
    """Write figure.svg, figure.png, an animation if there is one, and report.html into the folder of a run."""
    figure = save_figure(folder, sheet)
    animation = save_animation(folder, sheet)
    paper = catalogue().paper(sheet.order.exhibit.paper)
    write_text(folder / "report.html", run_page(sheet, paper, figure, animation))


def publish_summary(out: Path, runs: Sequence[RunRecord], failures: Sequence[str]) -> Path:
    """Write OUT/report.html over all runs of one call."""
    found = catalogue()
    page = out / "report.html"
    write_text(page, summary_page(found.exhibits, found.papers, runs, failures))
    return page
