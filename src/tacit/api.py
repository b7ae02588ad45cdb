"""The Python face of the laboratory: `tacit.run` and `tacit.exhibits`."""

from pathlib import Path
from typing import Any

from tacit.base.progress import Silent
from tacit.lab.exhibit import Exhibit
from tacit.lab.order import known_scale, known_seed
from tacit.lab.record import RunRecord
from tacit.lab.registry import catalogue
from tacit.lab.runner import run_exhibit
from tacit.lab.settings import with_settings
from tacit.report.publish import publish_run


def exhibits() -> tuple[Exhibit, ...]:
    """Every exhibit that is installed here, tacit's own and other packages'."""
    return tuple(catalogue().exhibits.values())


def run(
    id: str,
    scale: str = "laptop",
    seed: int = 0,
    out: str | Path = "runs",
    device: str = "auto",
    fresh: bool = False,
    **settings: Any,
) -> RunRecord:
    """Run an exhibit, or read its complete run folder of the same config, scale, seed and device.

    `settings` are fields of the exhibit's config (`K=4, alpha=(.1, .2)`). Whatever is wrong with
    the call raises `CallError`; a run that cannot be done raises `RunError`.
    """
    exhibit, size = catalogue().find(id), known_scale(scale)
    return run_exhibit(
        exhibit,
        with_settings(exhibit.scales[size], settings),
        scale=size,
        seed=known_seed(seed),
        device=device,
        out=Path(out),
        fresh=fresh,
        progress=Silent(),
        publish=publish_run,
    )
