"""A run in one process: what is written, when it is run again, and what is told when it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from contract import check_folder
from fakes.toy import Toy
from tacit import api
from tacit.errors import CallError, RunError
from tacit.lab.folder import Slot, locked
from tacit.lab.order import Order
from tacit.lab.record import read_record
from tacit.lab.registry import catalogue

RUNS = Path("runs")
FOLDER = RUNS / "toy2020.mean"


@pytest.fixture(autouse=True)
def computed(only_fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that lists which alphas were computed."""
    log = tmp_path / "computed"
    log.touch()
    monkeypatch.setenv("TOY_LOG", str(log))
    return log


def run(**changes: Any) -> Any:
    return api.run("toy2020.mean", **{"scale": "smoke", "out": RUNS, **changes})


def test_a_run_leaves_a_complete_folder_and_nothing_else(computed: Path) -> None:
    record = run(K=6)
    check_folder(FOLDER, smoke=True)
    assert record.folder == FOLDER
    assert record.claims[1].verdict == "holds"
    assert record.data.sizes["alpha"] == 3
    assert record.config["K"] == 6
    assert [path.name for path in (FOLDER / "nets").iterdir()] == ["net%20a%2Fb.safetensors"]
    assert [path.name for path in (RUNS / ".partial").iterdir()] == ["toy2020.mean.lock"]
    assert not torch.are_deterministic_algorithms_enabled()


def test_provenance_and_the_command_that_repeats_the_run() -> None:
    provenance = run(K=6, alpha=(0.1, 0.5), seed=3).provenance
    assert provenance["command"] == (
        "tacit run toy2020.mean --scale smoke --seed 3 --device cpu --set K=6 --set alpha=0.1,0.5"
    )
    assert provenance["device"] == "cpu"
    assert provenance["threads"] == torch.get_num_threads()
    assert provenance["started"].endswith("+00:00")
    assert provenance["resumed"] is False


def test_a_complete_run_is_reported_again(computed: Path) -> None:
    first = run()
    assert run() == first
    assert computed.read_text().split() == ["0.1", "0.2", "0.3"]


@pytest.mark.parametrize("change", [{"K": 6}, {"seed": 1}, {"scale": "laptop"}, {"fresh": True}])
def test_another_order_replaces_the_folder(change: dict[str, Any], computed: Path) -> None:
    run()
    computed.write_text("")
    record = run(**change)
    assert computed.read_text()
    assert read_record(FOLDER) == record
    check_folder(FOLDER, smoke=record.scale == "smoke")
    assert [path.name for path in (RUNS / ".partial").iterdir()] == ["toy2020.mean.lock"]


def test_the_same_seed_gives_the_same_bits() -> None:
    first, second = run(), run(out=Path("others"))
    same = ("result.nc", "claims.json", "config.json", "figure.svg", "figure.png")
    for name in same:
        assert (first.folder / name).read_bytes() == (second.folder / name).read_bytes(), name
    assert run(seed=1).data["mean"].values.tobytes() != second.data["mean"].values.tobytes()


def files_of_a_run() -> list[str]:
    return [
        *("config.json", "claims.json", "result.nc", "figure.svg", "figure.png", "report.html"),
        *("nets/net%20a%2Fb.safetensors", "provenance.json"),
    ]


@pytest.mark.parametrize("damage", ["delete", "truncate"])
def test_a_damaged_folder_is_noticed_and_fresh_heals_it(damage: str) -> None:
    run()
    for name in files_of_a_run():
        path = FOLDER / name
        content = path.read_bytes()
        path.unlink()
        if damage == "truncate":
            path.write_bytes(content[: len(content) // 2])
        with pytest.raises(RunError) as told:
            run()
        assert f"run folder {FOLDER} is damaged: {name} " in str(told.value)
        assert "--fresh" in str(told.value)
        path.write_bytes(content)
    (FOLDER / "provenance.json").write_text("[]")
    with pytest.raises(RunError, match=r"provenance\.json cannot be read"):
        run()
    run(fresh=True)
    check_folder(FOLDER, smoke=True)


def test_out_that_cannot_be_a_folder() -> None:
    Path("file").write_text("mine")
    with pytest.raises(RunError, match="file is a file, not a folder: choose another --out"):
        run(out="file")
    with pytest.raises(
        RunError, match=r"cannot be written .Not a directory.: choose another --out"
    ):
        run(out="file/below")
    RUNS.mkdir()
    FOLDER.write_text("mine")
    for fresh in (False, True):
        with pytest.raises(RunError, match="move it away or choose another --out"):
            run(fresh=fresh)
    assert FOLDER.read_text() == Path("file").read_text() == "mine"


def test_two_processes_do_not_share_a_folder(computed: Path) -> None:
    with (
        locked(RUNS, "toy2020.mean"),
        pytest.raises(RunError, match="is being written by another process"),
    ):
        run()
    run()


@pytest.mark.parametrize("name", ["odd2021.raises", "odd2021.absent", "odd2021.empty"])
def test_a_broken_exhibit_is_told_in_one_line(name: str) -> None:
    with pytest.raises(RunError, match=f"exhibit {name} (could not run|is broken): "):
        api.run(name, out=RUNS)
    assert not (RUNS / name).exists()


def test_the_traceback_is_kept_in_a_file() -> None:
    with pytest.raises(RunError) as told:
        api.run("odd2021.raises", out=RUNS)
    path = str(told.value).rpartition("traceback in ")[2].rstrip(")")
    assert "ZeroDivisionError: a fault" in Path(path).read_text()


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"scale": "big"}, "scale 'big' is none of smoke, laptop, paper"),
        ({"device": "tpu"}, "device 'tpu' is none of auto, cpu, cuda"),
        ({"seed": -1}, "seed takes a whole number from 0 on, as in --seed 0; got '-1'"),
        ({"K": "ten"}, "K takes a whole number, as in K=4; got 'ten'"),
        ({"K1": 9}, "K1=9 must be between 1 and K=4"),
    ],
)
def test_a_wrong_call_writes_nothing(changes: dict[str, Any], answer: str) -> None:
    with pytest.raises(CallError) as told:
        run(**changes)
    assert answer in str(told.value)
    assert not RUNS.exists()


def test_cuda_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(CallError, match="torch sees no GPU here; use --device cpu"):
        run(device="cuda")


class Kill(BaseException):
    """Nothing catches it, like a kill; unlike a kill it can be aimed between two renames."""


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("renames", [0, 1, 2])
def test_a_kill_between_the_last_renames_is_healed(
    renames: int, fresh: bool, computed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = run(seed=1)
    computed.write_text("")
    rename, done = Path.rename, []

    def dying(self: Path, target: Path) -> Path:
        if self.name == "toy2020.mean" or Path(target).name == "toy2020.mean":
            if len(done) == renames:
                raise Kill
            done.append(self)
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dying)
        if renames < 2:
            with pytest.raises(Kill):
                run(fresh=fresh)
        else:  # the last thing that can be cut short is the clearing up
            patch.setattr("tacit.lab.folder.shutil.rmtree", _die_at_last(patch))
            with pytest.raises(Kill):
                run(fresh=fresh)
    whole = [path for path in RUNS.rglob("provenance.json") if path.parent.name != "old"]
    assert whole
    record = run(fresh=fresh and renames < 2)
    assert record.seed == 0 != old.seed
    assert computed.read_text().split() == ["0.1", "0.2", "0.3"], "finished work was done again"
    check_folder(FOLDER, smoke=True)
    assert [path.name for path in (RUNS / ".partial").iterdir()] == ["toy2020.mean.lock"]


def _die_at_last(patch: pytest.MonkeyPatch) -> Any:
    from tacit.lab import folder

    clear = folder.shutil.rmtree

    def dying(path: Path, **options: Any) -> None:
        if path.parent.name == ".partial" and (path / "old").exists():
            raise Kill
        clear(path, **options)

    return dying


def test_parts_of_other_code_are_not_joined(
    computed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    exhibit = catalogue().find("toy2020.mean")
    order = Order(exhibit, Toy(), "smoke", 0, "cpu")
    changed = tmp_path / "other.py"
    changed.write_text("x = 1")
    place = Slot.of(order, RUNS)
    monkeypatch.setattr("tacit.lab.order._sources", lambda exhibit: [changed])
    assert Slot.of(order, RUNS).partial != place.partial
    assert Slot.of(order, RUNS).final == place.final
