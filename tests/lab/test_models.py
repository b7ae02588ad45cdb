"""Trained nets are kept by what made them; trainings go on where they were cut; bad stores cost a line."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tacit.base.files import read_tensors, write_tensors
from tacit.errors import CallError
from tacit.lab.models import store as store_module
from tacit.lab.models.shelf import address_of, clear, entries, models_folder
from tacit.lab.models.store import Checkpoint, Made, Models
from tacit.nets import PolyReLUNet, poly_relu_start
from tacit.train import train_logits

ROOT = Path(__file__).resolve().parents[2]
EPOCHS = 6
POWERS = (1.0, 3.0)


class Cut(Exception):
    """The training is cut short here."""


def starts() -> dict[float, PolyReLUNet]:
    return {p: poly_relu_start(6, 8, 3, p, [torch.Generator().manual_seed(0)]) for p in POWERS}


def recipe(p: float, epochs: int = EPOCHS) -> dict[str, object]:
    return {"training": "test", "data": "chance", "p": p, "epochs": epochs}


def obtained(
    models: Models,
    powers: tuple[float, ...] = POWERS,
    *,
    watched: Mapping[str, object] | None = None,
    at: Callable[[int], object] = lambda _epoch: None,
    seen: list[int] | None = None,
) -> dict[float, Made]:
    """The nets from the store; `seen` gets the epochs that were trained, `at` is called after each."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(40, 6, generator=generator)
    y = torch.randint(0, 3, (40,), generator=generator)

    def train(todo: list[float], checkpoint: Checkpoint) -> dict[float, Made]:
        def watch(epoch: int, nets: tuple[PolyReLUNet, ...]) -> None:
            size = np.array([float(net.w.norm()) for net in nets])
            checkpoint.curves.setdefault("size", []).append(size)
            if seen is not None:
                seen.append(epoch)
            at(epoch)

        nets = train_logits(
            [starts()[p] for p in todo], x, y, epochs=EPOCHS, batch=7, step=0.01,
            generator=torch.Generator().manual_seed(1), watch=watch, checkpoints=checkpoint,
        )  # fmt: skip
        curve = np.stack(checkpoint.curves["size"])
        return {
            p: Made(replace(net, w=net.w[0], v=net.v[0], b=net.b[0]), {"size": curve[:, i]})  # type: ignore[index]
            for i, (p, net) in enumerate(zip(todo, nets, strict=True))
        }

    return models.made({p: recipe(p) for p in powers}, train, watched)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def models(store: Path, told: list[str], monkeypatch: pytest.MonkeyPatch) -> Models:
    monkeypatch.setattr(store_module, "EVERY", 0.0)
    assert models_folder() == store
    return Models(store, told.append, "cpu")


def files(models: Models, ending: str) -> list[Path]:
    return sorted(models.folder.glob(f"*{ending}"))


def same(one: Mapping[float, Made], other: Mapping[float, Made]) -> bool:
    return all(
        torch.equal(getattr(one[p].net, name), getattr(other[p].net, name))
        for p in one
        for name in ("w", "v", "b")
    )


def test_a_net_is_trained_once_and_read_back_bit_for_bit(models: Models, told: list[str]) -> None:
    seen: list[int] = []
    first = obtained(models, seen=seen)
    again = obtained(models, seen=seen)
    assert seen == list(range(EPOCHS + 1))
    assert same(first, again)
    assert told == []
    assert [net.p for net in (again[p].net for p in POWERS)] == list(POWERS)
    # a file of the store is a net as any other
    for path in files(models, ".safetensors"):
        assert set(load_file(path)) == {"w", "v", "b"}
    record = json.loads(files(models, ".json")[0].read_text())
    assert record["recipe"]["torch"] == torch.__version__
    assert record["recipe"]["device"] == "cpu"
    assert not files(models, ".lock")
    assert not files(models, ".checkpoint.safetensors")


def test_one_net_more_trains_that_one_alone(models: Models) -> None:
    alone = obtained(models, (1.0,))
    seen: list[int] = []
    both = obtained(models, seen=seen)
    assert len(seen) == EPOCHS + 1
    assert same(alone, both)
    assert same(both, obtained(Models(models.folder / "other", print, "cpu")))


def test_any_change_of_the_recipe_is_another_address() -> None:
    known = recipe(1.0) | {"step": 0.1}
    others = [known | {"step": 0.2}, known | {"seed": 1}, recipe(1.0)]
    assert len({address_of(one) for one in (known, *others)}) == 4
    assert address_of(known) == address_of(dict(reversed(known.items())))


def test_curves_are_kept_beside_the_net_and_what_was_not_watched_is_trained_again(
    models: Models,
) -> None:
    seen: list[int] = []
    first = obtained(models, watched={"points": 40}, seen=seen)
    assert len(first[1.0].curves["size"]) == EPOCHS + 1
    again = obtained(models, watched={"points": 40}, seen=seen)
    np.testing.assert_array_equal(again[3.0].curves["size"], first[3.0].curves["size"])
    assert same(first, obtained(models, seen=seen))  # watched or not, the net is the same
    assert len(seen) == EPOCHS + 1
    assert same(first, obtained(models, watched={"points": 20}, seen=seen))
    assert len(seen) == 2 * (EPOCHS + 1)


@pytest.mark.parametrize("cuts", [(2,), (3, 4), (2, 2, 5), (EPOCHS,)])
def test_a_training_that_is_cut_goes_on_after_its_last_epoch(
    models: Models, cuts: tuple[int, ...]
) -> None:
    whole = obtained(Models(models.folder / "whole", print, "cpu"), watched={})
    seen: list[int] = []

    def cut(epoch: int) -> None:
        if left and epoch == left[0]:
            left.pop(0)
            raise Cut

    left = list(cuts)
    for _ in cuts:
        with pytest.raises(Cut):
            obtained(models, watched={}, at=cut, seen=seen)
    found = obtained(models, watched={}, at=cut, seen=seen)
    assert same(whole, found)
    for p in POWERS:
        np.testing.assert_array_equal(found[p].curves["size"], whole[p].curves["size"])
    # an epoch is trained again only where the cut came before it was kept
    assert sorted(seen) == sorted([*range(EPOCHS + 1), *cuts])
    assert not files(models, ".checkpoint.safetensors")


def test_checkpoints_are_not_written_at_every_epoch(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "EVERY", 3600.0)
    found: list[Path] = []
    obtained(models, at=lambda _epoch: found.extend(files(models, ".checkpoint.safetensors")))
    assert found == []


def cut_at(epoch: int, models: Models) -> Path:
    """The checkpoint that a training leaves which is cut there."""

    def cut(now: int) -> None:
        if now == epoch:
            raise Cut

    with pytest.raises(Cut):
        obtained(models, at=cut)
    (path,) = files(models, ".checkpoint.safetensors")
    return path


def test_a_checkpoint_of_another_recipe_is_refused_by_name(
    models: Models, told: list[str], store: Path
) -> None:
    path = cut_at(4, models)
    tensors, meta = read_tensors(path)
    write_tensors(path, tensors, meta | {"address": "0" * 64})
    seen: list[int] = []
    assert same(obtained(models, seen=seen), obtained(Models(store / "b", print, "cpu")))
    assert seen == list(range(EPOCHS + 1))
    (line,) = told
    assert path.name in line
    assert "of another recipe" in line


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def foreign(path: Path) -> None:
    tensors, meta = read_tensors(path)
    write_tensors(path, tensors, meta | {"address": "f" * 64})


def someone_elses(path: Path) -> None:
    save_file({"w": torch.zeros(2, 2)}, path)


def of_unknown_kind(path: Path) -> None:
    tensors, meta = read_tensors(path)
    del meta["digest"]
    meta["kind"] = "of the future"
    meta["digest"] = store_module._digest(tensors, meta)
    write_tensors(path, tensors, meta)


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (a_pipe, "it is no file"),
        (flipped, "its digest does not agree"),
        (cut_short, "no whole safetensors file"),
        (emptied, "no whole safetensors file"),
        (foreign, "of another recipe"),
        (someone_elses, "of another recipe"),
        (of_unknown_kind, "of the future"),
    ],
)
def test_a_bad_entry_is_named_and_made_again(
    models: Models, told: list[str], harm: Callable[[Path], None], words: str
) -> None:
    first = obtained(models)
    path = files(models, ".safetensors")[0]
    whole = path.read_bytes()
    harm(path)
    seen: list[int] = []
    assert same(first, obtained(models, seen=seen))
    assert len(seen) == EPOCHS + 1
    assert path.read_bytes() == whole  # the same net, byte for byte
    assert {line for line in told if str(path) in line and words in line} == set(told) != set()
    assert "\n" not in told[0]


def test_every_flipped_bit_of_an_entry_is_noticed_or_harmless(models: Models) -> None:
    net = obtained(models, (1.0,))[1.0].net
    (path,) = files(models, ".safetensors")
    whole, rng = path.read_bytes(), random.Random(0)
    for _ in range(60):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        known = models.read(path, path.stem)
        assert known is None or torch.equal(known[0]["w"], net.w)


def test_a_store_that_cannot_be_written_costs_one_line(tmp_path: Path, told: list[str]) -> None:
    (tmp_path / "file").touch()
    models = Models(tmp_path / "file" / "models", told.append, "cpu")
    assert obtained(models).keys() == set(POWERS)
    assert len(set(told)) == 1
    assert "the run goes on without" in told[0]
    assert "TACIT_MODELS" in told[0]


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: what a full disk looks like."""
    before, compiled = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = (
        True  # compiled modules would be cut short, for others to stumble over
    )
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = compiled


def test_a_full_store_costs_one_line_and_leaves_no_torn_file(
    models: Models, told: list[str]
) -> None:
    with at_most(200):
        first = obtained(models)
    assert len(set(told)) == 1
    assert list(models.folder.iterdir()) == []
    assert same(first, obtained(models))  # there is room again
    assert len(files(models, ".safetensors")) == len(POWERS)


def test_a_second_run_waits_for_the_first_and_trains_nothing(
    models: Models, told: list[str]
) -> None:
    seen: list[int] = []
    waits, results = threading.Event(), []

    def tell(line: str | None) -> None:
        told.append(line or "")
        waits.set()

    def second() -> None:
        results.append(obtained(Models(models.folder, tell, "cpu"), seen=seen))

    other = threading.Thread(target=second)

    def meanwhile(epoch: int) -> None:
        if epoch == 1:
            other.start()
            assert waits.wait(60)

    first = obtained(models, seen=seen, at=meanwhile)
    other.join(60)
    assert same(first, results[0])
    assert seen == list(range(EPOCHS + 1))
    assert len(told) == 1
    assert "waiting" in told[0]


def test_what_is_kept_is_listed_and_cleared(models: Models, store: Path) -> None:
    assert entries() == clear([]) == []
    obtained(models)
    cut_at(2, Models(store, print, "cuda"))  # another device: another recipe
    (store / "notes.txt").write_text("mine")
    (store / ".0123456789abcdef.tmp").write_text("left by a kill")
    found = entries()
    assert sorted(one.kind for one in found) == ["net", "net", "unfinished"]
    assert all(one.bytes == sum(path.stat().st_size for path in one.files) for one in found)
    with pytest.raises(CallError, match="no trained net has an address that begins with 'xyz'"):
        clear(["xyz"])
    net = next(one for one in found if one.kind == "net")
    assert clear([net.address[:12]]) == [net]
    assert len(entries()) == 2
    assert len(clear([])) == 2
    assert [path.name for path in store.iterdir()] == ["notes.txt"]


KILLS = 10
SCRIPT = """
import hashlib, os, random, signal, sys, time
import torch
from tacit.base.progress import Silent
from tacit.lab.bench import Bench
from tacit.lab.models import store
from tacit.papers.min2024.images.nets import pictures_of
from tacit.papers.min2024.images.settings import ImageNets
from tacit.papers.min2024.images.training import Watched, trained_nets

store.EVERY = 0.0
torch.set_num_threads(1)
config = ImageNets(dataset="digits", p=(1.0, 3.0), width=60, epochs=40, batch=60, repeats=1)
pictures = pictures_of("digits", 10)
torch.manual_seed(0)  # whatever is loaded late is loaded before the fork

class Parts(dict):
    def put(self, name, data): self[name] = data

def train(folder, out):
    os.environ["TACIT_MODELS"] = folder
    nets, curves = trained_nets(
        config, Bench("laptop", 0, "cpu", Silent(), Parts()), pictures, Watched(200, tuple(range(41)))
    )
    text = hashlib.sha256()
    for net in nets.values():
        for t in (net.w, net.v, net.b):
            text.update(t.numpy().tobytes())
    for name in sorted(curves.data_vars):
        text.update(curves[name].values.tobytes())
    open(out, "w").write(text.hexdigest())

def life(folder, out, seconds=None):
    child = os.fork()
    if not child:
        try:
            train(folder, out)
        finally:
            os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]

base = sys.argv[1]
clock = time.monotonic()
life(base + "/whole", base + "/whole.txt")
took = time.monotonic() - clock
rng = random.Random(int(sys.argv[2]))
os.makedirs(base + "/cut")
kills, left, longer = [], [], 1.0
for _ in range(KILLS):
    kills.append(life(base + "/cut", base + "/cut.txt", longer * rng.uniform(0, took / 6)))
    left = [name for name in os.listdir(base + "/cut") if "checkpoint" in name]
    longer *= 1.0 if left else 1.5  # other work may have slowed it since it was timed
life(base + "/cut", base + "/cut.txt")
print(kills.count(signal.SIGKILL), len(left), flush=True)
"""


@pytest.mark.slow
def test_ten_kills_at_random_moments_change_no_bit(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("KILLS", str(KILLS)), str(tmp_path), "5"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    killed, left = map(int, done.stdout.split())
    assert killed == KILLS, done.stderr
    assert left == 1
    whole, cut = ((tmp_path / f"{name}.txt").read_text() for name in ("whole", "cut"))
    assert whole == cut
