"""Two trees of run folders hold the same results, bit for bit: numbers, verdicts, nets (not the files' bytes).

    python -m benchmarks.same_results run OUT        the runs to compare, one thread (PYTHONPATH: the code)
    python -m benchmarks.same_results BEFORE AFTER   exit status 1 and a line for each difference

`run` makes every exhibit at smoke scale, and those that a laptop finishes soon at laptop scale.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr
from safetensors import safe_open

LAPTOP = (
    "min2024.fig1",
    "li2025.lemma5",
    "li2025.fig2ab",
    "frei2023.thm4.1",
    "min2025.alpha0",
    "min2025.transition",
)
JUDGED = ("id", "expected", "measured", "spread", "n", "verdict")


def main(words: list[str]) -> int:
    """Run or compare."""
    if len(words) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    if words[0] == "run":
        make(Path(words[1]))
        return 0
    before, after = map(Path, words)
    folders = sorted(path.parent.relative_to(before) for path in before.glob("*/*/result.nc"))
    found = [line for folder in folders for line in differences(before / folder, after / folder)]
    print(*found, f"{len(folders)} runs, {len(found)} differences", sep="\n")
    return 1 if found or not folders else 0


def make(out: Path) -> None:
    """All runs, each with nothing kept from another: one thread, stores of their own."""
    from tacit.lab.registry import catalogue

    kept = {"TACIT_MODELS": str(out / "models"), "XDG_CACHE_HOME": str(out / "cache")}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", **kept}
    tacit = [sys.executable, "-m", "tacit", "run", "--device", "cpu"]
    orders = [
        ([*catalogue().exhibits, "--scale", "smoke"], "smoke"),
        ([*LAPTOP], "laptop"),
        (["min2024.fig2", "--set", "alpha=.1"], "laptop"),
    ]
    for words, place in orders:
        subprocess.run([*tacit, *words, "--out", str(out / place)], env=environment, check=True)


def differences(before: Path, after: Path) -> Iterator[str]:
    """A line for each variable, claim and tensor that is not the same."""
    if not (after / "result.nc").exists():
        yield f"{after}: missing"
        return
    one, two = (xr.load_dataset(folder / "result.nc") for folder in (before, after))
    for name in sorted({*one.variables, *two.variables}, key=str):
        if name not in one.variables or name not in two.variables:
            yield f"{after}: variable {name} is in one of them alone"
        elif one[name].dims != two[name].dims or not same(one[name].values, two[name].values):
            yield f"{after}: variable {name} differs"
    claims = [json.loads((folder / "claims.json").read_text()) for folder in (before, after)]
    if len(claims[0]) != len(claims[1]):
        yield f"{after}: {len(claims[0])} claims became {len(claims[1])}"
    for old, new in zip(*claims, strict=False):
        for key in JUDGED:
            if old[key] != new[key]:
                yield f"{after}: claim {old['id']}: {key} was {old[key]}, is {new[key]}"
    nets = [
        {path.name: tensors(path) for path in folder.glob("nets/*")} for folder in (before, after)
    ]
    for name in sorted({*nets[0], *nets[1]}):
        old_net, new_net = (held.get(name, {}) for held in nets)
        for key in sorted({*old_net, *new_net}):
            if key not in old_net or key not in new_net or not same(old_net[key], new_net[key]):
                yield f"{after}: net {name}: tensor {key} differs"


def tensors(path: Path) -> dict[str, np.ndarray]:
    """What a net's file holds."""
    with safe_open(path, framework="np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def same(one: np.ndarray, two: np.ndarray) -> bool:
    """The same type, shape and bits; strings and objects by their values."""
    if one.dtype != two.dtype or one.shape != two.shape:
        return False
    if one.dtype.kind in "OUS":
        return bool((one == two).all())
    return np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(two).tobytes()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
