"""One run, from order to complete folder."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tacit.base.device import choose_device
from tacit.base.files import write_json, write_tensors, write_text, writing
from tacit.base.progress import Progress
from tacit.errors import RunError, TacitError
from tacit.lab.bench import Bench
from tacit.lab.claims import Claim
from tacit.lab.exhibit import Exhibit, Outcome, Scale
from tacit.lab.folder import Slot, locked
from tacit.lab.order import Order
from tacit.lab.parts import DiskParts
from tacit.lab.provenance import describe, now
from tacit.lab.record import RunRecord
from tacit.lab.store import plain, read_dataset, write_dataset
from tacit.version import __version__

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Sheet:
    """What a report shows of a run: the order, what was found, and where it comes from."""

    order: Order
    data: xr.Dataset
    claims: tuple[Claim, ...]
    provenance: Mapping[str, Any]


Publish = Callable[[Path, Sheet], None]
"""Writes figure.svg, figure.png, report.html and, where there is one, animation.gif into the folder."""


def run_exhibit(
    exhibit: Exhibit,
    config: Any,
    *,
    scale: Scale,
    seed: int,
    device: str,
    out: Path,
    fresh: bool,
    progress: Progress,
    publish: Publish,
    say: Callable[[str], None] | None = None,
) -> RunRecord:
    """Run the exhibit, or report its complete folder of the same order again unless `fresh`.

    `device` is "auto", "cpu" or "cuda". An interrupted run goes on from its finished parts. Only
    `TacitError` and `KeyboardInterrupt` come out of this: whatever else an exhibit raises is told
    in one line, with the traceback in a file that the line names. `say` is told that a complete run is of
    another version or of other code; before the work begins, that the complete run of another order will be
    replaced; what the exhibit warns of; and at the end, of parts that were cleared.
    """
    order = Order(exhibit, config, scale, seed, choose_device(device))

    def tell(line: str) -> None:
        if say and line:
            say(line)

    with locked(out, exhibit.id):
        slot = Slot.of(order, out)
        began_fresh = slot.began_fresh
        healed = slot.heal()
        if not fresh or (healed and began_fresh):
            known = slot.complete(order)
            if known is not None:
                tell(outdated(known, order))
                return known
        slot.begin(fresh=fresh)
        tell(slot.replaced(order))
        code = exhibit.load()
        made = order.code  # read now: what is edited from here on is not what runs
        parts = DiskParts(slot.parts)
        started, clock = now(), time.monotonic()
        with _explained(exhibit.id, slot.partial / "error.log"):
            bench = Bench(
                scale, seed, order.device, progress, parts, say, insisted=device != "auto"
            )
            with _repeatable():
                outcome = code.run(config, bench)
            folder = slot.draft()
            _draft(folder, order, outcome)
            seconds = time.monotonic() - clock
            provenance = describe(
                order, code=made, started=started, seconds=seconds, resumed=parts.resumed
            )
            # the report is made from what was stored: figure and folder cannot disagree
            data = read_dataset(folder / "result.nc")
            publish(folder, Sheet(order, data, outcome.claims, provenance))
            if cleared := slot.clear_earlier():
                tell(f"cleared {cleared} part{'s' * (cleared > 1)} of earlier code")
            return slot.seal(provenance)


def outdated(known: RunRecord, order: Order) -> str:
    """A line on a complete run that this version, or this code, did not make; empty if they did."""
    version, code = (known.provenance.get(key) for key in ("version", "code"))
    if version != __version__:
        return f"{known.folder} was run by tacit {version}, this is {__version__}: --fresh runs it again"
    if code not in (None, order.code):
        return f"{known.folder} was run by code that has changed since: --fresh runs it again"
    return ""


def _draft(folder: Path, order: Order, outcome: Outcome) -> None:
    """Write what was found, before anything is made of it."""
    write_json(folder / "config.json", plain(order.config))
    write_json(folder / "claims.json", [claim.as_json() for claim in outcome.claims])
    write_dataset(folder / "result.nc", outcome.data)
    nets = folder / "nets"
    if outcome.nets:
        with writing(nets):
            nets.mkdir()
    for name, net in outcome.nets.items():
        write_tensors(nets / f"{quote(name, safe='')}.safetensors", *net.state())


@contextmanager
def _repeatable() -> Iterator[None]:
    """Ask torch for algorithms that give the same bits again; warn where there is none.

    The global random state is left alone on purpose: an exhibit that draws from it instead of from
    `bench.generator` is then caught by the test that runs every exhibit twice.
    """
    import torch

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA starts
    # sets the same flags as use_deterministic_algorithms, which imports torch's compiler for seconds
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


@contextmanager
def _explained(id: str, log: Path) -> Iterator[None]:
    """Tell any failure of an exhibit's own code in one line; the traceback goes to `log`."""
    try:
        yield
    except TacitError:
        raise
    except (Exception, SystemExit) as error:  # an exhibit may raise anything
        write_text(log, traceback.format_exc())
        raise RunError(
            f"exhibit {id} could not run: {type(error).__name__}: {error} (traceback in {log})"
        ) from error
