"""Figures 3, 6 and Table 1 share their nets: what one trained, the others read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from torch.testing import assert_close

from benches import Memory, new_bench
from tacit.base.progress import Silent
from tacit.lab.bench import Bench
from tacit.lab.models import store as store_module
from tacit.lab.parts import DiskParts
from tacit.lab.registry import catalogue
from tacit.lab.settings import parse_assignments, with_settings
from tacit.nets import PolyReLUNet
from tacit.papers.min2024.images.nets import Nets, Pictures, pictures_of
from tacit.papers.min2024.images.settings import ImageNets
from tacit.papers.min2024.images.training import Watched, trained_nets
from tacit.train.descent import logits

TINY = ImageNets(
    dataset="digits", p=(1.0, 3.0), width=12, epochs=3, batch=300, repeats=2, points=5, steps=1
)
ALL = Watched(50, (0, 1, 2, 3))


@pytest.fixture(scope="module")
def pictures() -> Pictures:
    return pictures_of("digits", 10)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """The p of the nets of each training."""
    calls: list[list[float]] = []
    check = logits.check_data

    def counted(nets: list[Any], *args: Any) -> None:
        calls.append([net.p for net in nets])
        check(nets, *args)

    # not train_logits itself: with another function in its place, nets have other addresses
    monkeypatch.setattr(logits, "check_data", counted)
    return calls


def run(id: str, *settings: str) -> xr.Dataset:
    """At smoke scale with these --set, without figure and report."""
    exhibit = catalogue().find(id)
    config = with_settings(exhibit.scales["smoke"], parse_assignments(settings), "--set ")
    return exhibit.load().run(config, replace(new_bench(), scale="smoke")).data


def test_fig6_then_table1_then_strict_with_its_settings_trains_once(
    trained: list[list[float]],
) -> None:
    curves = run("min2024.fig6")
    assert trained == [[1.0, 2.0, 3.0, 4.0]]
    table = run("min2024.table1")
    few = ("linf=0.1", "l2=1", "l1=5", "points=2", "few=1", "steps=2", "more_steps=2", "queries=2")
    same = ("classes=10", "p=1,4", "width=50", "epochs=3", "batch=300")
    run("min2024.table1_strict", *same, *few)
    assert len(trained) == 1
    clean = table.accuracy.isel(row=0).values
    np.testing.assert_array_equal(curves.test_accuracy.isel(epoch=-1).values, clean)


def test_what_was_not_watched_is_trained_again_and_ends_alike(
    pictures: Pictures, trained: list[list[float]]
) -> None:
    nets, ends = trained_nets(TINY, new_bench(), pictures)
    assert len(trained) == 2  # a seed at a time
    watched, curves = trained_nets(TINY, new_bench(), pictures, ALL)
    assert len(trained) == 4
    again, read = trained_nets(TINY, new_bench(), pictures, ALL)
    assert len(trained) == 4
    for key, net in nets.items():
        assert net.w.equal(watched[key].w)
        assert net.w.equal(again[key].w)
    assert curves.equals(read)
    assert curves.sizes == {"epoch": 4, "p": 2, "seed": 2}
    assert curves.test_accuracy.isel(epoch=[-1]).equals(ends.test_accuracy)


def test_only_what_makes_the_net_counts(pictures: Pictures, trained: list[list[float]]) -> None:
    trained_nets(TINY, new_bench(), pictures)
    trained_nets(replace(TINY, points=9, steps=7), new_bench(), pictures)
    trained_nets(replace(TINY, p=(3.0,), repeats=1), new_bench(), pictures)
    assert len(trained) == 2
    trained_nets(replace(TINY, p=(3.0, 2.0), repeats=1), new_bench(), pictures)
    assert trained[2:] == [[2.0]]
    # the order of the points is that of the run's first seed
    trained_nets(replace(TINY, repeats=1), new_bench(seed=1), pictures)
    for other in ({"step": 2e-3}, {"layer": "written"}, {"epochs": 2}, {"batch": 200}):
        before = len(trained)
        trained_nets(replace(TINY, p=(1.0,), repeats=1, **other), new_bench(), pictures)
        assert len(trained) == before + 1, other
    moved = replace(pictures, x=pictures.x + 1e-3)
    trained_nets(replace(TINY, p=(1.0,), repeats=1), new_bench(), moved)
    assert len(trained) == 9


def test_each_seed_is_a_part_also_where_all_are_trained_at_once(
    pictures: Pictures, trained: list[list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU; here the nets stay on the CPU, so that the ends can be compared with those of one by one."""
    alone, _ = trained_nets(TINY, new_bench(), pictures)
    before = len(trained)
    monkeypatch.setattr(PolyReLUNet, "to", lambda net, _device: net)
    monkeypatch.setattr(Pictures, "to", lambda self, _device: self)
    gpu = replace(new_bench(), device="cuda")
    together, curves = trained_nets(TINY, gpu, pictures)
    assert len(trained) == before + 1
    assert list(gpu.parts) == ["nets-0", "nets-1"]
    assert curves.sizes == {"epoch": 1, "p": 2, "seed": 2}
    for key, net in alone.items():
        assert_close(
            net.w, together[key].w, rtol=1e-5, atol=1e-7
        )  # another shape of product, another rounding
    parts = Memory({"nets-0": gpu.parts["nets-0"]})
    trained_nets(TINY, replace(gpu, parts=parts), pictures)  # killed after its first part
    assert len(trained) == before + 1


def test_parts_are_read_back_without_the_store(
    pictures: Pictures, trained: list[list[float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def go(**changes: Any) -> tuple[Nets, xr.Dataset]:
        monkeypatch.setenv("TACIT_MODELS", str(tmp_path / str(len(said)) / str(len(trained))))
        (tmp_path / "parts").mkdir(exist_ok=True)
        bench = Bench("laptop", 0, "cpu", Silent(), DiskParts(tmp_path / "parts"), said.append)
        here = replace(pictures)  # nothing of it was asked for yet, as in another process
        return trained_nets(replace(TINY, **changes), bench, here, ALL)

    nets, curves = go()
    again, read = go()
    assert len(trained) == 2
    assert curves.equals(read)
    assert all(net.w.equal(again[key].w) for key, net in nets.items())
    go(step=2e-3)
    assert len(trained) == 4
    assert said == []


def test_a_cut_training_goes_on_and_shows_the_same_curves(
    pictures: Pictures, trained: list[list[float]], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "EVERY", 0.0)
    one = replace(TINY, repeats=1)
    show, epochs = logits.LogitTraining.show_each, []

    def cut(*args: Any) -> Any:
        epochs.append(1)
        if len(epochs) == 3:
            raise KeyboardInterrupt
        return show(*args)

    monkeypatch.setattr(logits.LogitTraining, "show_each", cut)
    with pytest.raises(KeyboardInterrupt):
        trained_nets(one, new_bench(), pictures, ALL)
    assert len(list(store.glob("*.checkpoint.safetensors"))) == 1
    nets, curves = trained_nets(one, new_bench(), pictures, ALL)
    assert len(epochs) == 3 + 1  # the third again, and no other
    assert not list(store.glob("*.checkpoint.safetensors"))
    monkeypatch.setenv("TACIT_MODELS", str(store / "empty"))
    whole, undisturbed = trained_nets(one, new_bench(), pictures, ALL)
    assert curves.equals(undisturbed)
    for key, net in nets.items():
        assert net.w.equal(whole[key].w)
