"""What a run that was cut short goes on from: parts whose own code is what it was, in tacit and elsewhere."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import xarray as xr

import fakes
from tacit.base import sources
from tacit.base.progress import Silent
from tacit.cli import status
from tacit.lab.bench import Bench
from tacit.lab.parts import DiskParts
from tacit.lab.registry import catalogue

COMMAND = ["run", "clay2022.hard", "--scale", "smoke", "--device", "cpu"]
FILES = {
    "__init__.py": """
        from clay2022.settings import Hard
        from tacit.lab.exhibit import Exhibit, Paper

        PAPER = Paper("clay2022", "Clay", "C. Lay", 2022, "@article{clay2022}")
        SCALES = {"smoke": Hard(), "laptop": Hard(), "paper": Hard()}
        EXHIBITS = [Exhibit("clay2022.hard", "Hard", "Section 1", "It is.", SCALES, "clay2022.exhibit")]
    """,
    "settings.py": """
        from dataclasses import dataclass

        @dataclass(frozen=True)
        class Hard:
            repeats: int = 3
    """,
    "exhibit.py": """
        from functools import partial

        import xarray as xr

        from clay2022.claims import claims
        from clay2022.figure import draw as draw
        from clay2022.training import measure, train
        from tacit.lab.exhibit import Outcome

        def run(config, bench):
            nets = [bench.part(f"net{s}", partial(train, config, bench, s)) for s in bench.seeds(config.repeats)]
            found = bench.part("found", lambda: measure(nets))
            return Outcome(found, claims(found, bench))
    """,
    "training.py": """
        import os

        import torch
        import xarray as xr

        from clay2022 import arithmetic
        from tacit.base.statistics import proportion

        def logged(word):
            with open(os.environ["CLAY_LOG"], "a") as stream:
                stream.write(f"{word}\\n")

        def train(config, bench, seed):
            if os.environ.get("CLAY_DIE") == str(seed):
                raise ZeroDivisionError("cut short")
            logged(seed)
            w = torch.randn(3, generator=bench.generator("w", seed=seed), dtype=torch.float64)
            return xr.Dataset({"w": ("d", arithmetic.twice(w).numpy())})

        def measure(nets):
            logged("found")
            share = proportion(sum(bool(net.w[0] > 0) for net in nets), len(nets))
            return xr.concat(nets, "seed").assign(share=share.value)
    """,
    "arithmetic.py": """
        FACTOR = 2

        def twice(x):
            return FACTOR * x

        def nobody_calls(x):
            return x
    """,
    "claims.py": """
        from tacit.lab.claims import Expected
        from tacit.lab.claim import judge

        def claims(found, bench):
            share, most = float(found.share), Expected(max=1)
            return (judge("clay2022.hard.share", "few", "Section 1", most, share, n=3, smoke=False),)
    """,
    "figure.py": """
        from matplotlib import pyplot

        def draw(data, config):
            figure, axes = pyplot.subplots()
            axes.plot(data["share"], "o")
            axes.set_axis_off()
            return figure
    """,
}


@pytest.fixture(autouse=True)
def computed(only_fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of another party is installed; the file lists what its exhibit computed."""
    home = only_fakes / "clay2022"
    home.mkdir()
    for name, text in FILES.items():
        (home / name).write_text(textwrap.dedent(text))
    fakes.install(only_fakes, clay2022="clay2022")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    log = tmp_path / "computed"
    log.touch()
    monkeypatch.setenv("CLAY_LOG", str(log))
    return log


def in_a_new_process(*words: str) -> int:
    """The command, with nothing of the package loaded and nothing of any source remembered."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "clay2022"]:
        del sys.modules[name]
    for known in ("code_digest", "followed", "_source_of", "_path_of", "_facts"):
        getattr(sources, known).cache_clear()
    catalogue.cache_clear()
    return status([*COMMAND, *words])


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture
def edited_tacit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str, str], None]:
    """Edits a copy of one of tacit's modules, and lets the digests of code see the copy."""

    def change(module: str, old: str, new: str) -> None:
        find = sources._path_of
        copy = tmp_path / f"{module}.py"
        copy.write_text(find(module).read_text())
        edit(copy, old, new)
        monkeypatch.setattr(
            sources, "_path_of", cache(lambda name: copy if name == module else find(name))
        )

    return change


HARMLESS = [
    ("claims.py", "max=1", "max=2"),
    ("claims.py", "share, most = float(found.share)", "share, most = 0 * float(found.share)"),
    ("figure.py", '"o"', '"x"'),
    ("arithmetic.py", "return x\n", "return -x\n"),
    ("arithmetic.py", "def twice(x):\n", 'def twice(x):\n    """Doubled."""\n    # a comment\n'),
    ("tacit.report.html", "def run_page(", "EDITED = 1\n\n\ndef run_page("),
    ("tacit.lab.parts", "LENGTH = 12", "LENGTH = 10 + 2"),
    ("tacit.base.statistics", "import numpy as np", "import ast\nimport numpy as np"),
]
HARMFUL = [
    ("training.py", '"w", seed=seed', '"v", seed=seed'),
    ("arithmetic.py", "FACTOR * x", "x + x"),
    ("arithmetic.py", "FACTOR = 2", "FACTOR = 2.5"),
    ("tacit.lab.bench", "digest_size=8", "digest_size=7"),
]


@pytest.mark.parametrize(("name", "old", "new"), HARMLESS)
def test_an_edit_of_claims_figure_or_report_resumes(
    name: str,
    old: str,
    new: str,
    computed: Path,
    only_fakes: Path,
    edited_tacit: Callable[[str, str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun(monkeypatch)
    if name.startswith("tacit."):
        edited_tacit(name, old, new)
    else:
        edit(only_fakes / "clay2022" / name, old, new)
    assert in_a_new_process() == 0
    assert computed.read_text().split() == ["0", "1", "2", "found"]
    assert '"resumed": true' in Path("runs/clay2022.hard/provenance.json").read_text()
    assert "earlier code" not in capsys.readouterr().err


@pytest.mark.parametrize(("name", "old", "new"), HARMFUL)
def test_an_edit_of_what_the_training_calls_does_not(
    name: str,
    old: str,
    new: str,
    computed: Path,
    only_fakes: Path,
    edited_tacit: Callable[[str, str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun(monkeypatch)
    if name.startswith("tacit."):
        edited_tacit(name, old, new)
    else:
        edit(only_fakes / "clay2022" / name, old, new)
    assert in_a_new_process() == 0
    assert computed.read_text().split() == ["0", "1", "0", "1", "2", "found"]
    assert '"resumed": false' in Path("runs/clay2022.hard/provenance.json").read_text()
    assert "tacit: cleared 2 parts of earlier code\n" in capsys.readouterr().err


def test_an_edit_of_one_part_leaves_the_others(
    computed: Path,
    only_fakes: Path,
    edited_tacit: Callable[[str, str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    edit(only_fakes / "clay2022" / "claims.py", "most = ", "most = 1 / 0 +")
    assert in_a_new_process() == 1
    edit(only_fakes / "clay2022" / "claims.py", "most = 1 / 0 +", "most = ")
    edited_tacit("tacit.base.statistics", "lower_limit(events, n, ", "lower_limit(events, n, 0 + ")
    assert in_a_new_process() == 0
    assert computed.read_text().split() == ["0", "1", "2", "found", "found"]
    assert "tacit: cleared 1 part of earlier code\n" in capsys.readouterr().err


def test_parts_of_another_order_stay_while_their_code_does(
    computed: Path,
    only_fakes: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun(monkeypatch)
    edit(only_fakes / "clay2022" / "claims.py", "max=1", "max=2")
    assert in_a_new_process("--seed", "7") == 0
    assert "earlier code" not in capsys.readouterr().err
    assert len(list(Path("runs/.partial").rglob("*.nc"))) == 2
    edit(only_fakes / "clay2022" / "arithmetic.py", "FACTOR = 2", "FACTOR = 3")
    assert in_a_new_process("--seed", "8") == 0
    assert "tacit: cleared 2 parts of earlier code\n" in capsys.readouterr().err
    assert not list(Path("runs/.partial").rglob("*.nc"))


def test_a_complete_run_of_changed_code_is_said_to_be_so(
    computed: Path,
    only_fakes: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert in_a_new_process() == 0
    before = Path("runs/clay2022.hard/provenance.json").read_bytes()
    assert in_a_new_process() == 0
    assert "has changed" not in capsys.readouterr().err
    edit(only_fakes / "clay2022" / "claims.py", "max=1", "max=2")
    assert in_a_new_process() == 0
    told = (
        "tacit: runs/clay2022.hard was run by code that has changed since: --fresh runs it again\n"
    )
    assert told in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr("tacit.lab.runner.__version__", "9.9")
        assert in_a_new_process() == 0
    assert "was run by tacit 0.1.0, this is 9.9: --fresh runs it again" in capsys.readouterr().err
    assert computed.read_text().split() == ["0", "1", "2", "found"]
    assert Path("runs/clay2022.hard/provenance.json").read_bytes() == before
    assert in_a_new_process("--fresh") == 0
    assert in_a_new_process() == 0
    assert "has changed" not in capsys.readouterr().err


def test_what_cannot_be_identified_is_never_resumed_and_that_is_said(tmp_path: Path) -> None:
    heard: list[str] = []
    stream = iter([1, 2, 3])
    for session in (1, 2):
        bench = Bench("smoke", 0, "cpu", Silent(), DiskParts(tmp_path), heard.append)
        found = bench.part("odd", lambda: xr.Dataset({"x": next(stream)}))
        assert found.x == session
    assert "warning: part odd will not be resumed if this run is interrupted" in heard[0]


def begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was cut short before its third net."""
    monkeypatch.setenv("CLAY_DIE", "2")
    assert in_a_new_process() == 1
    monkeypatch.delenv("CLAY_DIE")
    assert len(list(Path("runs/.partial").rglob("net*.nc"))) == 2
