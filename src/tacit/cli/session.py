"""The runs of one call: checked together first, then run one after the other, or on several cores."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from tacit.base.device import choose_device
from tacit.base.progress import on_stderr
from tacit.cli.lines import complain
from tacit.errors import CallError, RunError
from tacit.lab.exhibit import Exhibit, Scale
from tacit.lab.folder import prepare
from tacit.lab.order import known_scale, known_seed
from tacit.lab.record import RunRecord
from tacit.lab.runner import run_exhibit
from tacit.lab.settings import parse_assignments, with_settings
from tacit.report.publish import publish_run


def run_all(
    exhibits: Sequence[Exhibit],
    *,
    scale: str,
    settings: Sequence[str],
    seed: str,
    device: str,
    out: Path,
    fresh: bool,
    workers: int = 1,
) -> tuple[list[RunRecord], list[str]]:
    """The complete runs, and a line for each exhibit that could not run (told on stderr as well).

    A wrong call runs nothing at all. `workers` exhibits run at a time on a CPU; a GPU has one.
    """
    size, first, given = known_scale(scale), known_seed(seed), parse_assignments(settings)
    several = len(exhibits) > 1
    configs = [_configured(exhibit, size, given, named=several) for exhibit in exhibits]
    chosen = choose_device(device)
    prepare(out)
    order = {"scale": size, "seed": first, "device": chosen, "out": out, "fresh": fresh}
    runs, failures = [], []
    for found in _found(exhibits, configs, workers if chosen == "cpu" else 1, order):
        if isinstance(found, RunRecord):
            runs.append(found)
        else:
            complain(str(found))
            failures.append(str(found))
    return runs, failures


def _found(
    exhibits: Sequence[Exhibit], configs: Sequence[Any], workers: int, order: dict[str, Any]
) -> Iterator[RunRecord | RunError]:
    """The run of each exhibit, or why there is none."""
    if min(workers, len(exhibits)) > 1:
        from tacit.cli.several import side_by_side

        yield from side_by_side(exhibits, configs, workers, **order)
        return
    for exhibit, config in zip(exhibits, configs, strict=True):
        try:
            # an exhibit that prints must not get into the JSON document
            with on_stderr(exhibit.id) as progress, redirect_stdout(sys.stderr):
                yield run_exhibit(
                    exhibit, config, progress=progress, publish=publish_run, say=complain, **order
                )
        except RunError as error:
            yield error


def _configured(exhibit: Exhibit, size: Scale, given: Mapping[str, str], *, named: bool) -> Any:
    """The exhibit's config with the settings; of several exhibits, the one that refuses is named."""
    try:
        return with_settings(exhibit.scales[size], given, "--set ")
    except CallError as error:
        raise CallError(f"{exhibit.id}: {error}" if named else str(error)) from None
