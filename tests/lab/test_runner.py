"""A run in one process: what is written, when it is run again, and what is told when it fails."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import xarray as xr

from contract import check_folder
from fakes.toy import Toy
from tacit import api
from tacit.errors import CallError, RunError
from tacit.lab.folder import Slot, locked
from tacit.lab.order import Order
from tacit.lab.parts import DiskParts
from tacit.lab.record import read_record, seal
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


@pytest.mark.parametrize(
    "change",
    [
        {"files": 6},
        {"files": []},
        {"files": {}},
        {"files": {"claims.json": 1}},
        {"seconds": "abc"},
        {"seconds": math.nan},
        {"id": "foo.bar"},
        {"scale": ["smoke"]},
        {"seed": "0"},
        {"order": None},
        {"command": 1},
    ],
)
def test_provenance_of_wrong_types_is_damage(change: dict[str, Any]) -> None:
    run()
    mark = FOLDER / "provenance.json"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), **change}))
    with pytest.raises(RunError, match=r"damaged: provenance\.json cannot be read; --fresh runs"):
        run()
    run(fresh=True)
    check_folder(FOLDER, smoke=True)


@pytest.mark.parametrize(
    ("name", "text"), [("claims.json", "[1]"), ("claims.json", "{"), ("config.json", "{")]
)
def test_a_file_that_is_listed_and_makes_no_sense_is_damage(name: str, text: str) -> None:
    run()
    mark = FOLDER / "provenance.json"
    provenance = json.loads(mark.read_text())
    (FOLDER / name).write_text(text)
    mark.unlink()
    seal(FOLDER, provenance)
    with pytest.raises(RunError, match=f"damaged: {name} cannot be read; --fresh runs it anew"):
        run()


@pytest.mark.parametrize("name", ["notes.txt", "nets/mine.safetensors", "deep/er/notes.txt"])
@pytest.mark.parametrize("change", [{"seed": 1}, {"fresh": True}])
def test_a_file_of_the_user_is_never_deleted(
    name: str, change: dict[str, Any], computed: Path
) -> None:
    run()
    computed.write_text("")
    mine = FOLDER / name
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(RunError, match=f"{name} is no file of a run.*move it away or choose"):
        run(**change)
    assert mine.read_text() == "mine"
    assert computed.read_text() == "", "it is told before the work, not after"
    assert run().seed == 0  # what is complete is still reported
    mine.unlink()
    run(**change)


def test_a_folder_of_the_user_is_never_deleted() -> None:
    FOLDER.mkdir(parents=True)
    (FOLDER / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match=r"provenance.json is missing"):
        run()
    with pytest.raises(RunError, match=r"notes.txt is no file of a run"):
        run(fresh=True)
    assert (FOLDER / "notes.txt").read_text() == "mine"


def test_a_file_that_comes_during_the_run_waits_for_the_user(
    computed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    mine = FOLDER / "notes.txt"
    seal = Slot.seal

    def late(self: Slot, provenance: dict[str, Any]) -> Any:
        mine.write_text("mine")
        return seal(self, provenance)

    with monkeypatch.context() as patch:
        patch.setattr(Slot, "seal", late)
        with pytest.raises(RunError, match=r"notes.txt is no file of a run"):
            run(seed=1)
    assert mine.read_text() == "mine"
    computed.write_text("")
    mine.unlink()
    assert run(seed=1).seed == 1
    assert computed.read_text() == "", "finished work was done again"


def test_what_other_orders_left_empty_is_cleared_and_parts_are_kept() -> None:
    partial = RUNS / ".partial"
    for name in ("mean-00000000/parts", "mean-11111111/parts", "mean-b-00000000/parts"):
        (partial / f"toy2020.{name}").mkdir(parents=True)
    (partial / "toy2020.mean-00000000" / "fresh").touch()
    DiskParts(partial / "toy2020.mean-11111111" / "parts").made_by(xr.Dataset).put(
        "a", xr.Dataset()
    )
    run()
    assert sorted(path.name for path in partial.iterdir()) == [
        "toy2020.mean-11111111",
        "toy2020.mean-b-00000000",
        "toy2020.mean.lock",
    ]


@pytest.mark.parametrize("out", ["x" * 300, "/".join(["x" * 200] * 30)])
def test_out_with_a_name_that_is_too_long(out: str) -> None:
    with pytest.raises(RunError, match=r"cannot be written .File name too long.: choose another"):
        run(out=out)


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


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("raise SystemExit(0)", "is broken: importing exits failed .SystemExit: 0"),
        ("def run(config, bench):\n    raise SystemExit(0)\ndraw = run", "could not run: System"),
    ],
)
def test_an_exhibit_that_exits_is_told_in_one_line(
    text: str, answer: str, only_fakes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (only_fakes / "exits.py").write_text(text)
    monkeypatch.delitem(sys.modules, "exits", raising=False)
    exhibit = replace(catalogue().find("toy2020.mean"), code="exits")
    monkeypatch.setitem(catalogue().exhibits, "toy2020.mean", exhibit)
    with pytest.raises(RunError, match=answer):
        run()
    assert not FOLDER.exists()


def test_a_package_that_exits_has_a_digest(only_fakes: Path) -> None:
    (only_fakes / "leaves").mkdir()
    (only_fakes / "leaves" / "__init__.py").write_text("raise SystemExit(0)")
    exhibit = replace(catalogue().find("toy2020.mean"), code="leaves.inner")
    assert Order(exhibit, Toy(), "smoke", 0, "cpu").code


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
