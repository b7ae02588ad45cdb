"""Runs cut short in the middle: nothing finished is lost, and the end is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract import check_folder
from tacit.cli import status

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ["run", "toy2020.mean", "--scale", "smoke", "--device", "cpu"]
FOLDER = Path("runs/toy2020.mean")


@pytest.fixture(autouse=True)
def computed(only_fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that lists which alphas were computed."""
    log = tmp_path / "computed"
    log.touch()
    monkeypatch.setenv("TOY_LOG", str(log))
    return log


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt here, whatever the test runner made of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_killed_then_resumed(
    only_fakes: Path, computed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests", only_fakes)))
    killed = subprocess.run(
        [sys.executable, "-m", "tacit", *COMMAND],
        env={**os.environ, "PYTHONPATH": path, "TOY_DIE": "0.3:SIGKILL"},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert not FOLDER.exists()
    # a part that the kill (or the disk) has damaged is computed again; the others are not
    (damaged,) = Path("runs").rglob("alpha%3D0.1@*.nc")
    damaged.write_bytes(damaged.read_bytes()[:-1])

    assert status(COMMAND) == 0
    assert computed.read_text().split() == ["0.1", "0.2", "0.1", "0.3"]
    check_folder(FOLDER, smoke=True)
    assert '"resumed": true' in (FOLDER / "provenance.json").read_text()
    assert status([*COMMAND, "--out", "undisturbed"]) == 0
    for name in ("result.nc", "claims.json", "figure.svg", "figure.png"):
        undisturbed = Path("undisturbed") / FOLDER.name / name
        assert (FOLDER / name).read_bytes() == undisturbed.read_bytes(), name


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("fresh", [[], ["--fresh"]])
def test_interrupted_then_resumed(
    fresh: list[str],
    computed: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if fresh:  # what `--fresh` began it may resume; what it did not, it begins anew
        assert status(COMMAND) == 0
        computed.write_text("")
    for alpha, done in (("0.2", ["0.1"]), ("0.3", ["0.1", "0.2"])):
        monkeypatch.setenv("TOY_DIE", f"{alpha}:SIGINT")
        capsys.readouterr()
        assert status([*COMMAND, *fresh, "--json"]) == 130
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.splitlines()[-1] == "tacit: interrupted: the same command resumes"
        assert computed.read_text().split() == done
    monkeypatch.delenv("TOY_DIE")
    assert status([*COMMAND, *fresh]) == 0
    assert computed.read_text().split() == ["0.1", "0.2", "0.3"]
    check_folder(FOLDER, smoke=True)
