"""The Python face of the laboratory: `tacit.run`, `tacit.exhibits` and `tacit.audit`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.base.progress import Silent
from tacit.lab.exhibit import Exhibit
from tacit.lab.order import known_scale, known_seed
from tacit.lab.record import RunRecord
from tacit.lab.registry import catalogue
from tacit.lab.runner import run_exhibit
from tacit.lab.settings import with_settings
from tacit.report.publish import publish_run

if TYPE_CHECKING:
    from tacit.auditing import AuditRecord


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


def audit(
    model: Any,
    data: Any,
    *,
    norm: float | str = 2,
    radii: Sequence[float] | None = None,
    box: Sequence[float] | None = None,
    subclass: str | None = None,
    limit: int | None = None,
    black_box: bool = False,
    device: str = "auto",
    batch: int = 1000,
) -> AuditRecord:
    """How robust a classifier is: robust accuracy as intervals, flags, universal directions, averaging.

    `model`: one of tacit's nets, any torch module (in eval mode) or callable with one output or logits, or what
    `tacit audit` takes as text. `data`: a path to .npz, a dict with x and y, a tuple (x, y[, subclass]), or an
    iterable of such tuples, for instance a DataLoader. Points stay on the host, and `batch` of them at a time are
    moved to the device. `norm` is 1, 2 or inf. `radii`: none given, eight steps up to half the distance between
    classes. `box`: the ends between which perturbed points must stay. `subclass`: the key of subclass labels.
    `limit`: at most that many points. `black_box`: by queries alone, for models without gradients.
    """
    from tacit.auditing import audit as audited

    return audited(
        model,
        data,
        norm=norm,
        radii=radii,
        box=box,
        subclass=subclass,
        limit=limit,
        black_box=black_box,
        device=device,
        batch=batch,
        progress=Silent(),
    )
