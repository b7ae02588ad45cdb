"""A package outside tacit brings a net in one file and an exhibit in one folder; every verb takes them."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import fakes
import tacit
from tacit.attack import apgd, minimal
from tacit.certify import radius
from tacit.cli.app import app
from tacit.lab import registry
from tacit.nets import load_net, save_net
from tacit.nets.kinds import KINDS
from tacit.train import descend

NET = '''
"""A slab: positive where <u, x> lies within r of c."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack.shortest.minimal import Found
from tacit.auditing.averaging import weighted
from tacit.certify import Question, Radii
from tacit.nets import TensorNet, register


@dataclass(frozen=True)
class Slab(TensorNet):
    u: Float[Tensor, "*e D"]
    c: Float[Tensor, "*e"]
    r: Float[Tensor, "*e"]

    def __call__(self, x: Float[Tensor, "*x n D"]) -> Float[Tensor, "*e n"]:
        along = (x @ self.u.unsqueeze(-1)).squeeze(-1)
        return self.r.unsqueeze(-1) - (along - self.c.unsqueeze(-1)).abs()


def certificate(net: Slab, x: Tensor, y: Tensor, question: Question) -> Radii:
    """The distance to the nearer face, in any norm."""
    dual = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[float(question.norm.order)]
    found = (net(x) * y).clamp_min(0) / net.u.norm(p=dual)
    return Radii(found, found)


def shortest(net: Slab, x: Tensor, y: Tensor, _generator: torch.Generator) -> Found:
    """Straight to the nearer face, and a hair beyond."""
    length = (1 + 1e-6) * (net(x) * y).clamp_min(0) / net.u.norm()
    way = (x @ net.u - net.c).sign() * y
    return Found(length, (way * length).unsqueeze(1) * net.u / net.u.norm())


def neurons(net: Slab, _shape: tuple[int, ...]) -> Any:
    return weighted(net.u.unsqueeze(0), net.u.norm().reshape(1), name="the normal")


register(
    Slab,
    name="outside_slab",
    certificate=certificate,
    shortest=shortest,
    trainee="tacit.train.descent.checks:tensor_trainee",
    hidden_weights="outside.nets:neurons",
)
'''
PAPER = """
from tacit.lab.exhibit import Exhibit, Paper

from outside.slab.settings import Settings

PAPER = Paper(key="out2031", title="Slabs", authors="O. Utside", year=2031, bibtex="@misc{out2031}")
EXHIBITS = [
    Exhibit(
        id="out2031.slab",
        title="The radius of a slab",
        where="Lemma 1",
        claim="A point of a slab is as far from it as its margin.",
        scales={name: Settings() for name in ("smoke", "laptop", "paper")},
        code="outside.slab.exhibit",
    )
]
"""
SETTINGS = """
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    n: int = 20
"""
EXHIBIT = """
import torch
import xarray as xr
from matplotlib import pyplot

from outside.nets import Slab
from tacit.attack import minimal
from tacit.certify import radius
from tacit.lab.claim import Expected, judge
from tacit.lab.exhibit import Outcome
from tacit.train import descend


def run(config, bench):
    stream = bench.generator("points")
    x = torch.randn(config.n, 3, generator=stream, dtype=torch.float64)
    one = torch.ones((), dtype=torch.float64)
    start = Slab(torch.ones(3, dtype=torch.float64), 0 * one, one)
    y = (1 - x[:, 0].abs()).sign()
    net = descend(start, x, y, step=0.1, steps=30, loss="logistic").net
    found, best = radius(net, x, y), minimal(net, x, y).radius
    gap = float((best - found.upper).abs().max())
    data = xr.Dataset({"radius": ("point", found.lower.numpy())})
    claims = judge(
        "out2031.slab.same", "the attack finds the radius", "Lemma 1", Expected(max=1e-4), gap,
        n=config.n, smoke=False,
    )
    return Outcome(data, (claims,), {"slab": net})


def draw(data, config):
    figure, axes = pyplot.subplots()
    axes.plot(data["radius"], "o")
    return figure
"""


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The package, installed in a folder of its own; the value is its module of nets."""
    home = tmp_path / "site" / "outside"
    (home / "slab").mkdir(parents=True)
    files = {"__init__": PAPER, "nets": NET, "slab/__init__": "", "slab/settings": SETTINGS}
    for name, text in {**files, "slab/exhibit": EXHIBIT}.items():
        (home / f"{name}.py").write_text(text)
    fakes.install(tmp_path / "site", out2031="outside")
    (told,) = (tmp_path / "site").glob("*.dist-info/entry_points.txt")
    told.write_text(told.read_text() + "\n[tacit.nets]\noutside = outside.nets\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.chdir(tmp_path)
    before = dict(KINDS)
    registry.catalogue.cache_clear()
    yield importlib.import_module("outside.nets")
    registry.catalogue.cache_clear()
    forget()
    KINDS.clear()
    KINDS.update(before)


def forget() -> None:
    """As in a process that has not imported the package."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "outside"]:
        del sys.modules[name]
    for cls in [cls for cls, kind in KINDS.items() if kind.name == "outside_slab"]:
        del KINDS[cls]


def slab(outside: ModuleType, *lead: int) -> tuple[torch.Tensor, torch.Tensor, object]:
    """Points with their labels, and a slab (or an ensemble of equal ones) of another normal."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 3, generator=generator, dtype=torch.float64)
    u = torch.tensor([1.0, 0.4, -0.2], dtype=torch.float64).expand(*lead, 3).contiguous()
    one = torch.ones(lead, dtype=torch.float64)
    return x, (1 - x[:, 0].abs()).sign(), outside.Slab(u, 0.1 * one, one)


def test_its_exhibit_runs(outside: ModuleType) -> None:
    record = tacit.run("out2031.slab", scale="smoke", device="cpu", out="runs")
    (claim,) = record.claims  # by the protocol from before claims had a source
    assert (claim.verdict, claim.source) == ("as predicted", "ours")
    page = (record.folder / "report.html").read_text(encoding="utf-8")
    assert "A prediction or a bar of our own" in page
    (path,) = Path("runs").glob("*/nets/*.safetensors")
    assert type(load_net(path)).__name__ == "Slab"


def test_its_net_is_attacked_and_certified(outside: ModuleType) -> None:
    x, y, net = slab(outside)
    for norm in (1, 2, np.inf):
        found = radius(net, x, y, norm=norm)
        best = minimal(net, x, y, norm=norm)
        assert (net(x + best.delta) * y <= 0).all()
        assert (best.radius >= found.lower * (1 - 1e-9)).all()
        assert (best.radius <= found.upper * 1.05 + 1e-9).all()
        half = float(found.upper.median())
        broken = apgd(net, x, y, [half], norm=norm).broken[0]
        assert (broken | (found.lower > 0.95 * half)).all()
        assert not (broken & (found.lower > half)).any()
    three = radius(slab(outside, 3)[2], x, y)
    assert torch.equal(three.lower, radius(net, x, y).lower.expand(3, -1))
    assert minimal(slab(outside, 2)[2], x, y).radius.shape == (2, 60)


def test_its_net_is_trained_alone_and_as_an_ensemble(outside: ModuleType) -> None:
    x, y, net = slab(outside)
    settings = {"step": 0.2, "steps": 40, "loss": "logistic", "record": (0, 40)}
    alone = descend(net, x, y, **settings)
    assert alone.history[1].loss < alone.history[0].loss
    assert not torch.equal(alone.net.u, net.u)
    both = descend(slab(outside, 2)[2], x, y, **settings)
    assert torch.allclose(both.net.u, alone.net.u.expand(2, -1))
    assert both.history[1].loss.shape == (2,)


def test_its_net_is_saved_loaded_and_audited(outside: ModuleType) -> None:
    x, y, net = slab(outside)
    save_net("slab.safetensors", net)
    np.savez("points.npz", x=x.numpy(), y=y.numpy())
    forget()
    again = load_net("slab.safetensors")  # the entry point tells which module registers the kind
    assert torch.equal(again(x), net(x))
    call = ["audit", "slab.safetensors", "points.npz", "--json", "--radii", "0.1,0.5,2"]
    told = CliRunner().invoke(app, call)
    assert told.exit_code == 0, told.output
    record = tacit.audit(again, (x, y), radii=[0.1, 0.5, 2], device="cpu")
    assert record.certificate == "radius of a Slab (tacit.certify.radius)"
    assert record.attack == "minimal norm"
    assert record.averaging.of == "the normal"
    assert all(at.certified.value == at.attacked.value for at in record.curve)
    assert json.loads(told.stdout)["certificate"] == record.certificate


def test_a_damaged_file_of_its_net_is_one_line(outside: ModuleType) -> None:
    from safetensors.torch import save_file

    _, _, net = slab(outside)
    tensors, meta = net.state()
    save_file({**tensors, "c": tensors["u"].clone()}, "slab.safetensors", metadata=meta)
    with pytest.raises(tacit.errors.RunError, match=r"tensor 'c' is torch.float64 of shape \(3,\)"):
        load_net("slab.safetensors")
