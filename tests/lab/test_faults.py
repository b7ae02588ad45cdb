"""Full disks, planted links and pipes, flipped bits, kills between renames: one line each, nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from contract import check_folder
from tacit import api
from tacit.cli import status
from tacit.errors import RunError
from tacit.lab import record as records
from tacit.lab.record import read_provenance, read_record

ROOT = Path(__file__).resolve().parents[2]
RUNS = Path("runs")
FOLDER = RUNS / "toy2020.mean"
LOCK = RUNS / ".partial" / "toy2020.mean.lock"

pytestmark = pytest.mark.usefixtures("only_fakes")


def run(**changes: Any) -> Any:
    return api.run("toy2020.mean", **{"scale": "smoke", "out": RUNS, "device": "cpu", **changes})


def python(*words: str, site: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests", site)))
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="ulimit")
def test_a_limit_on_file_sizes_is_one_line_and_no_segmentation_fault(only_fakes: Path) -> None:
    # Python would leave compiled modules that are cut short, for others to stumble over
    limits = "export PYTHONDONTWRITEBYTECODE=1; ulimit -f 8"
    command = f"{sys.executable} -m tacit run li2025.fig2ab --scale smoke --device cpu --out o"
    told = python("bash", "-c", f"{limits}; {command}", site=only_fakes)
    assert told.returncode == 1, told.stderr
    assert told.stderr.splitlines()[-1].endswith("(File too large): choose another --out")
    assert "Traceback" not in told.stderr
    assert not list(Path("o").rglob("*.tmp"))


def test_without_fcntl_and_without_the_compiler_of_torch(only_fakes: Path) -> None:
    code = """if True:
        import sys
        sys.modules["fcntl"] = None  # as on Windows
        import tacit, tacit.auditing, tacit.estimator, tacit.lab.runner
        from tacit.lab import registry
        registry.HOME = "fakes.papers"
        import torch
        before = torch.get_deterministic_debug_mode()
        tacit.run("toy2020.mean", scale="smoke", device="cpu")
        assert torch.get_deterministic_debug_mode() == before
        assert "torch._inductor" not in sys.modules
    """
    told = python(sys.executable, "-W", "ignore", "-c", code, site=only_fakes)
    assert told.returncode == 0, told.stderr
    check_folder(FOLDER, smoke=True)


def test_a_run_asks_for_algorithms_that_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from fakes import toy_mean

    seen: list[tuple[bool, bool]] = []
    compute = toy_mean._mean

    def watched(*given: Any) -> Any:
        asked = torch.are_deterministic_algorithms_enabled()
        seen.append((asked, torch.is_deterministic_algorithms_warn_only_enabled()))
        return compute(*given)

    monkeypatch.setattr(toy_mean, "_mean", watched)
    run()
    assert seen == [(True, True)] * 3


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_planted_as_a_lock_is_left_alone(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = Path("theirs")
    theirs.write_text("theirs")
    LOCK.parent.mkdir(parents=True)
    if kind == "link":
        LOCK.symlink_to(theirs.resolve())
    elif kind == "pipe":
        os.mkfifo(LOCK)
    else:
        LOCK.mkdir()
    with pytest.raises(RunError, match=r"\.lock is no lock of a run: delete it or choose another"):
        run()
    assert theirs.read_text() == "theirs"
    assert not FOLDER.exists()


def test_a_link_that_is_planted_as_a_temporary_file_is_not_written_through() -> None:
    theirs = Path("theirs")
    theirs.write_text("theirs")
    place = RUNS / ".partial"
    place.mkdir(parents=True)
    for name in (".report.html.tmp", "report.html"):
        (RUNS / name).symlink_to(theirs.resolve())
    assert status(["verify", "toy2020", "--scale", "smoke", "--device", "cpu"]) == 0
    assert theirs.read_text() == "theirs"
    assert not (RUNS / "report.html").is_symlink()


@pytest.mark.parametrize("name", ["provenance.json", "claims.json"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_link_or_pipe_in_a_run_folder_is_damage(
    kind: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run()
    path = FOLDER / name
    if kind == "link":
        path.rename("elsewhere")
        path.symlink_to(Path("elsewhere").resolve())
    else:
        path.unlink()
        os.mkfifo(path)
    with pytest.raises(RunError, match=f"is damaged: {name} "):
        run()
    assert status(["show", "toy2020.mean"]) == 0
    assert f"is damaged: {name} " in capsys.readouterr().err


def test_nets_have_the_mode_of_other_files_and_the_same_bytes_again() -> None:
    first, second = run(), run(out=Path("others"))
    net = "nets/net%20a%2Fb.safetensors"
    assert (first.folder / net).read_bytes() == (second.folder / net).read_bytes()
    modes = {path.stat().st_mode for path in first.folder.rglob("*") if path.is_file()}
    assert len(modes) == 1


def test_any_flipped_bit_of_the_mark_is_noticed() -> None:
    run()
    mark = FOLDER / "provenance.json"
    whole = mark.read_bytes()
    for bit in range(0, 8 * len(whole), 29):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        mark.write_bytes(damaged)
        with pytest.raises(RunError, match=r"damaged: provenance\.json cannot be read"):
            read_provenance(FOLDER)
    mark.write_bytes(whole)
    assert read_record(FOLDER) == run()


def test_a_mark_from_before_there_was_a_checksum_is_read() -> None:
    run()
    mark = FOLDER / "provenance.json"
    told = json.loads(mark.read_text())
    for key in ("checksum", "sizes", "code"):
        del told[key]
    mark.write_text(json.dumps(told))
    assert read_record(FOLDER) == run()


def test_show_does_not_hash_nets_and_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run()
    hashed: list[str] = []
    digest = records.digest
    monkeypatch.setattr(records, "digest", lambda path: hashed.append(path.name) or digest(path))
    assert status(["show", "toy2020.mean"]) == 0
    assert sorted(hashed) == ["claims.json", "config.json"]
    (FOLDER / "figure.png").write_bytes(b"cut")
    assert status(["show", "toy2020.mean"]) == 0
    assert "damaged: figure.png is not the file that was written" in capsys.readouterr().err


class Kill(BaseException):
    """Nothing catches it."""


@pytest.mark.parametrize("then", ["show", "another seed"])
def test_a_kill_when_neither_run_is_in_place_is_healed_by_any_command(
    then: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(seed=1)
    rename = Path.rename

    def dying(self: Path, target: Path) -> Path:
        if Path(target).name == FOLDER.name:
            raise Kill
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dying)
        with pytest.raises(Kill):
            run(seed=2)
    assert not FOLDER.exists()
    capsys.readouterr()
    if then == "show":
        assert status(["show", "toy2020.mean", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["run"]["seed"] == 2
    else:
        command = ["run", "toy2020.mean", "--scale", "smoke", "--device", "cpu", "--seed", "3"]
        assert status(command) == 0
        assert "replaces the smoke run, seed 2" in capsys.readouterr().err
    check_folder(FOLDER, smoke=True)
    assert [path.name for path in (RUNS / ".partial").iterdir()] == [LOCK.name]
