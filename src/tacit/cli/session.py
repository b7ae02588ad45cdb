"""The runs of one call: checked together first, then run one after the other."""

import sys
from collections.abc import Mapping, Sequence
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
) -> tuple[list[RunRecord], list[str]]:
    """The complete runs, and a line for each exhibit that could not run (told on stderr as well).

    A wrong call runs nothing at all.
    """
    size, first, given = known_scale(scale), known_seed(seed), parse_assignments(settings)
    several = len(exhibits) > 1
    configs = [_configured(exhibit, size, given, named=several) for exhibit in exhibits]
    chosen = choose_device(device)
    prepare(out)
    runs, failures = [], []
    for exhibit, config in zip(exhibits, configs, strict=True):
        try:
            # an exhibit that prints must not get into the JSON document
            with on_stderr(exhibit.id) as progress, redirect_stdout(sys.stderr):
                runs.append(
                    run_exhibit(
                        exhibit,
                        config,
                        scale=size,
                        seed=first,
                        device=chosen,
                        out=out,
                        fresh=fresh,
                        progress=progress,
                        publish=publish_run,
                        say=complain,
                    )
                )
        except RunError as error:
            complain(str(error))
            failures.append(str(error))
    return runs, failures


def _configured(exhibit: Exhibit, size: Scale, given: Mapping[str, str], *, named: bool) -> Any:
    """The exhibit's config with the settings; of several exhibits, the one that refuses is named."""
    try:
        return with_settings(exhibit.scales[size], given, "--set ")
    except CallError as error:
        raise CallError(f"{exhibit.id}: {error}" if named else str(error)) from None
