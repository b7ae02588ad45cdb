"""Every part of every exhibit is known by its code and its values, the same in two processes.

One process computes the parts at smoke scale; another one, with other hashes of strings, must find them all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.base.progress import Silent
from tacit.lab.bench import Bench
from tacit.lab.parts import DiskParts
from tacit.lab.registry import catalogue

# lambdas and partials, a second each
QUICK = ("li2025.thmD", "li2025.fig2ab", "frei2023.lemma2.1")


def test_a_second_process_finds_the_parts_of_the_first(tmp_path: Path) -> None:
    check(tmp_path, QUICK)


@pytest.mark.slow
def test_a_second_process_finds_the_parts_of_every_exhibit(tmp_path: Path) -> None:
    check(tmp_path, tuple(catalogue().exhibits))


def check(folder: Path, ids: tuple[str, ...]) -> None:
    words = [sys.executable, "-W", "ignore", __file__, str(folder), *ids]
    path = str(Path(__file__).resolve().parents[1] / "src")
    env = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "1"}
    told = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stdout == "", "a part that cannot be identified"
    for id in ids:
        parts = run_parts(folder / id, id)
        assert not parts.own, f"{id} computed parts that were there"
        assert parts.resumed == any((folder / id).glob("*.nc"))


def run_parts(folder: Path, id: str) -> DiskParts:
    """Compute the exhibit's parts, or find them."""
    exhibit = catalogue().find(id)
    folder.mkdir(exist_ok=True)
    parts = DiskParts(folder)
    bench = Bench(
        "smoke", 0, "cpu", Silent(), parts, lambda line: print(line) if "resumed" in line else None
    )
    exhibit.load().run(exhibit.scales["smoke"], bench)
    return parts


if __name__ == "__main__":
    for each in sys.argv[2:]:
        run_parts(Path(sys.argv[1]) / each, each)
