"""Do the claims notice a world that contradicts their paper? Every exhibit is run in three of them.

    python -m benchmarks.other_worlds RUNS OUT [ID...]

RUNS are run folders of the true world, OUT takes those of the others (same settings, same seed). The worlds
change the data and the nets, never an exhibit's code:

    labels    the label of every point, of every image, is drawn at random
    relu      whatever p a net names, its neurons are plain ReLU
    leaning   every two centres lean towards each other, with a cosine near 1/2

A claim notices a world where it agreed in the true one (holds, as predicted) and no longer does, or where its
exhibit cannot run at all. Checks of our own accuracy do not count. Exit status 1 if some exhibit notices nothing.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from pathlib import Path
from typing import Any

import torch

AGREES = ("holds", "as predicted")
LIMIT = 900  # seconds; a world in which training never ends is noticed


def main(words: list[str]) -> int:
    """Run what is missing, then the table."""
    if words[:1] == ["inside"]:
        return inside(*words[1:])
    if len(words) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    from tacit.lab.record import read_record

    runs, out = map(Path, words[:2])
    true = {p.parent.name: read_record(p.parent) for p in sorted(runs.glob("*/provenance.json"))}
    ids = [id for id in true if id in words[2:] or not words[2:]]
    cells = [(world, id) for id in ids for world in WORLDS]
    with ThreadPoolExecutor(os.cpu_count()) as several:
        runs_there = several.map(
            lambda cell: elsewhere(cell[0], cell[1], true[cell[1]], out), cells
        )
        told = dict(zip(cells, runs_there, strict=True))
    blind = []
    print(f"{'exhibit':<24} {'agree':>5}  " + "  ".join(f"{world:>7}" for world in WORLDS))
    for id in ids:
        agreed = [c.id for c in true[id].claims if c.verdict in AGREES and c.source != "check"]
        shares = [noticed(agreed, told[world, id]) for world in WORLDS]
        print(f"{id:<24} {len(agreed):>5}  " + "  ".join(f"{s:>7.0%}" for s in shares), flush=True)
        if agreed and not any(shares):
            blind.append(id)
    print("nothing notices in:", ", ".join(blind) or "none")
    return int(bool(blind))


def elsewhere(world: str, id: str, run: Any, out: Path) -> dict[str, str] | None:
    """The verdicts of that exhibit in that world, by claim; None where it cannot run there."""
    from tacit.lab.record import read_record

    folder = out / world / id
    if not (folder / "provenance.json").exists():
        kept = {"TACIT_MODELS": str(out / world / "models"), "OMP_NUM_THREADS": "1"}
        order = [sys.executable, "-m", "benchmarks.other_worlds", "inside", world, id]
        try:
            subprocess.run(
                [*order, run.scale, str(run.seed), str(out / world), json.dumps(dict(run.config))],
                env={**os.environ, **kept}, capture_output=True, timeout=LIMIT, check=True,
            )  # fmt: skip
        except subprocess.SubprocessError:
            return None
    return {claim.id: claim.verdict for claim in read_record(folder).claims}


def noticed(agreed: list[str], verdicts: dict[str, str] | None) -> float:
    """The share of the claims that agreed and no longer do."""
    lost = [id for id in agreed if verdicts is None or verdicts.get(id) not in AGREES]
    return len(lost) / max(len(agreed), 1)


def inside(world: str, id: str, scale: str, seed: str, out: str, config: str) -> int:
    """Run one exhibit in that world; `config` is that of the true one, as JSON."""
    from tacit import api

    settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in json.loads(config).items()
    }
    WORLDS[world]()
    api.run(id, scale=scale, seed=int(seed), device="cpu", out=out, **settings)
    return 0


def labels() -> None:
    """Labels by chance, of points and of images."""
    from tacit.data import clusters
    from tacit.data.images import images

    sample = clusters.ClusterMixture.sample

    @wraps(sample)
    def tossed(self: Any, n: int, generator: torch.Generator, **more: Any) -> Any:
        points = sample(self, n, generator, **more)
        coins = torch.randint(2, points.y.shape, generator=generator, device=points.y.device)
        return dataclasses.replace(points, y=(2 * coins - 1).to(points.y.dtype))

    clusters.ClusterMixture.sample = tossed  # type: ignore[method-assign]
    after(images.Images, lambda self: put(self, "y", shuffled(self.y)))


def relu() -> None:
    """p = 1 in every net, in flows of several p at once, and in the field that a first phase follows."""
    from tacit.measure import alignment
    from tacit.nets import PolyReLUNet, TwoLayerNet
    from tacit.train import gradient_flow

    for kind in (TwoLayerNet, PolyReLUNet):
        after(kind, lambda self: put(self, "p", 1.0))
    field = alignment.alignment_field
    swap(field, lambda w, x, y, _, *more, **named: field(w, x, y, 1.0, *more, **named))

    def plain(*args: Any, powers: Any = None, **named: Any) -> Any:
        return gradient_flow(
            *args, powers=None if powers is None else torch.ones_like(powers), **named
        )

    swap(gradient_flow, plain)


def leaning() -> None:
    """Centres that share half of their direction."""
    from tacit.data.clusters import ClusterMixture

    def lean(self: Any) -> None:
        size = self.centres.norm(dim=1, keepdim=True)
        unit = self.centres / size.clamp_min(1e-300)
        shared = unit.sum(0) / unit.sum(0).norm().clamp_min(1e-300)
        turned = unit + shared
        put(self, "centres", size * turned / turned.norm(dim=1, keepdim=True).clamp_min(1e-300))

    after(ClusterMixture, lean)


WORLDS: dict[str, Callable[[], None]] = {"labels": labels, "relu": relu, "leaning": leaning}


def after(kind: type, change: Callable[[Any], None]) -> None:
    """Have every new object of a frozen class changed once it is made."""
    made = kind.__init__  # type: ignore[misc]

    @wraps(made)
    def other(self: Any, *args: Any, **named: Any) -> None:
        made(self, *args, **named)
        change(self)

    kind.__init__ = other  # type: ignore[misc]


def put(self: Any, name: str, value: Any) -> None:
    """Set a field of a frozen object."""
    object.__setattr__(self, name, value)


def shuffled(y: Any) -> Any:
    """The labels in another order, the same one each time."""
    import numpy as np

    return np.random.default_rng(0).permutation(y)


def swap(old: Callable[..., Any], new: Callable[..., Any]) -> None:
    """Put a function in the place of another wherever tacit's modules name it."""
    import importlib

    from tacit.lab.registry import catalogue

    for exhibit in catalogue().exhibits.values():
        importlib.import_module(exhibit.code)
    for name, module in list(sys.modules.items()):
        if name.startswith("tacit"):
            for key, value in list(vars(module).items()):
                if value is old:
                    setattr(module, key, new)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
