"""`tacit audit`: a report for people, one JSON document for programs, one line for whatever is wrong."""

from __future__ import annotations

import json
import pickle
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tacit.attack.ball.apgd import apgd
from tacit.attack.universal import learned_universal
from tacit.auditing import attacks, directions
from tacit.certify import choice
from tacit.cli import status
from tacit.data import min2024_mixture
from tacit.measure.flags import KINDS
from tacit.nets import average_net

Capture = pytest.CaptureFixture[str]
MIXTURE = min2024_mixture(D=20, K=4, K1=2, alpha=0.2)
POINTS = MIXTURE.sample(120, torch.Generator().manual_seed(0))

MODELS = """
import torch
from torch import nn

torch.manual_seed(0)
print("importing")

class Steps(nn.Module):
    def forward(self, x):
        return torch.sign(x.sum(1)).detach()

class Blank(nn.Module):
    def forward(self, x):
        return x.sum(1) * float("nan")

def three():
    return nn.Sequential(nn.Linear(20, 6), nn.ReLU(), nn.Linear(6, 3)).eval()

def training():
    return nn.Linear(20, 3)

def steps():
    return Steps().eval()

def blank():
    return Blank().eval()

class Picky(nn.Linear):
    def forward(self, x):
        if x.abs().max() > 3:
            raise ValueError("too far")
        return super().forward(x) - 5 * x.mean(1, keepdim=True)

def picky():
    return Picky(20, 1).eval()

def late():
    class Late(nn.Linear):
        def forward(self, x):
            import beside
            return beside.same(super().forward(x))
    return Late(20, 3).eval()

def stopped():
    raise KeyboardInterrupt

def fails():
    raise RuntimeError("out of luck")
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mymodels", raising=False)
    Path("mymodels.py").write_text(MODELS)
    tensors, meta = average_net(MIXTURE).state()
    save_file(tensors, "net.safetensors", metadata=meta)
    x, y = POINTS.x.numpy(), POINTS.y.numpy()
    np.savez("data.npz", x=x, y=y, cluster=POINTS.z.numpy())
    np.savez("three.npz", x=x, y=POINTS.z.numpy() % 3)
    np.savez("small.npz", x=x[:, :7], y=y)
    np.savez("bytes.npz", x=(x > 0).astype(np.uint8), y=y)
    np.savez("holes.npz", x=np.where(x > 0.5, np.nan, x), y=y)
    np.savez("objects.npz", x=np.array([{}, {}], dtype=object), y=y)
    np.savez("bare.npz", x=x)
    Path("empty.pt").write_bytes(b"")
    Path("beside.py").write_text("def same(x): return x")
    save_file({"0.weight": torch.ones(2, 2)}, "weights.safetensors")
    Path("model.pt").write_bytes(pickle.dumps({"w": 1}))


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Types are checked at every call in tests, which costs more than the work."""
    monkeypatch.setattr(attacks, "apgd", partial(apgd, steps=5))
    monkeypatch.setattr(attacks, "QUERIES", 10)
    monkeypatch.setattr(directions, "learned_universal", partial(learned_universal, steps=2))


def audit(*arguments: str) -> int:
    return status(["audit", *arguments, "--device", "cpu"])


NET = ("net.safetensors", "data.npz")


def one_line(capsys: Capture) -> str:
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = [line for line in printed.err.splitlines() if line != "importing"]
    (line,) = lines
    assert line.startswith("tacit: ")
    return line


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ([], "missing argument 'MODEL'"),
        (["net.safetensors"], "missing argument 'DATA'"),
        (
            ["model.pt", "data.npz"],
            "model.pt is a pickle, and is not opened: unpickling can run any",
        ),
        (["absent.safetensors", "data.npz"], "there is no model 'absent.safetensors'"),
        (["data.npz", "data.npz"], "data.npz is data (.npz): MODEL comes first, then DATA"),
        (["mymodels.py", "data.npz"], "mymodels.py is Python code: write mymodels:NAME, where"),
        (["./mymodels.py:three", "data.npz"], "is Python code: write mymodels:three, where three"),
        (["..", "data.npz"], ".. is a directory: MODEL is"),
        (["empty.pt", "data.npz"], "empty.pt is empty"),
        (["weights.safetensors", "data.npz"], "holds weights without a net"),
        (["weights.safetensors", "data.npz"], "net.load_state_dict("),
        (
            ["mymodels:picky", "data.npz", "--radii", "50"],
            "the model failed: ValueError: too far (at a perturbed point: where the model takes",
        ),
        ([*NET, "--radii", "1e200"], "radius 1e+200: torch.float64, the model's type, computes"),
        (["nowhere:make", "data.npz"], "importing nowhere failed: ModuleNotFoundError"),
        (["mymodels:absent", "data.npz"], "mymodels has no 'absent'"),
        (
            ["mymodels:fails", "data.npz"],
            "calling mymodels:fails() failed: RuntimeError: out of luck",
        ),
        (["mymodels:Steps.forward", "data.npz"], "failed: TypeError"),
        (["mymodels:training", "data.npz"], "the model is in train mode"),
        (["mymodels:steps", "data.npz"], "no gradient with respect to its input"),
        (["mymodels:steps", "data.npz"], "--black-box"),
        (["mymodels:blank", "data.npz"], "output holds NaN or inf"),
        (["mymodels:three", "data.npz"], "y holds the labels -1, 1: the model has 3 outputs"),
        (
            ["net.safetensors", "three.npz"],
            "y holds the labels 0, 1, 2: a model of one output takes",
        ),
        (["net.safetensors", "small.npz"], "features, x has 7"),
        (["net.safetensors", "bytes.npz"], "x holds integers (uint8)"),
        (["net.safetensors", "holes.npz"], "x holds NaN or inf in "),
        (["net.safetensors", "objects.npz"], "holds pickled objects, and is not opened"),
        (["net.safetensors", "bare.npz"], "bare.npz has no array 'y', only x"),
        (["net.safetensors", "absent.npz"], "there is no file absent.npz"),
        (["net.safetensors", "mymodels.py"], "mymodels.py is no .npz file"),
        ([*NET, "--norm", "3"], "norm 3: choose 1, 2, inf"),
        ([*NET, "--radii", "0.1,-0.2"], "radius -0.2: radii are finite numbers from 0 on"),
        ([*NET, "--radii", "nan"], "radius nan"),
        ([*NET, "--radii", ""], "radii: give at least one, as in --radii 0.1,0.2"),
        ([*NET, "--radii", "a"], "--radii takes numbers, as in --radii 0.1,0.2; got 'a'"),
        ([*NET, "--radii", "0.1,"], "--radii takes numbers"),
        ([*NET, "--box", "0,1"], "the box 0,1 excludes the data, which lies in [-0."),
        ([*NET, "--box", "1"], "box 1: give two finite ends"),
        ([*NET, "--box", "x,1"], "--box takes numbers, as in --box 0,1"),
        ([*NET, "--limit", "0"], "limit 0: audit at least 1 point"),
        ([*NET, "--limit", "many"], "--limit takes a whole number, as in --limit 500; got 'many'"),
        (
            [*NET, "--subclass", "z"],
            "has no array 'z', only x, y, cluster: choose one of these with",
        ),
    ],
)
def test_a_wrong_call_is_one_line(arguments: list[str], answer: str, capsys: Capture) -> None:
    assert audit(*arguments) == 2
    assert answer in one_line(capsys)


def test_an_unknown_device_is_one_line(capsys: Capture) -> None:
    assert status(["audit", *NET, "--device", "tpu"]) == 2
    assert "device 'tpu' is none of auto, cpu, cuda" in one_line(capsys)


def test_the_report_says_what_a_reader_needs(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert audit(*NET, "--radii", "0.6,0.2", "--subclass", "cluster") == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    for told in (
        "net.safetensors",
        "120 points, l2",
        "clean accuracy 100.0%",
        "certified",
        "attacked",
    ):
        assert told in printed
    for told in (
        "no flags",
        "x - y delta",
        "x + delta",
        "does it average features?  yes",
        "given: 2 + 2",
    ):
        assert told in printed
    assert printed.index(" 0.2 ") < printed.index(" 0.6 ")


def test_json_is_one_document_with_the_promised_keys(capsys: Capture) -> None:
    assert (
        audit("mymodels:three", "three.npz", "--radii", "0.1,0.3", "--norm", "inf", "--json") == 0
    )
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert "importing" in printed.err
    assert list(document)[:7] == ["clean", "n", "norm", "curve", "flags", "universal", "averaging"]
    assert set(document) - set(list(document)[:7]) == {
        *("model", "box", "certificate", "attack", "confidence")
    }
    assert (document["n"], document["norm"]) == (120, "inf")
    assert 0 <= document["clean"] <= 1
    assert [at["radius"] for at in document["curve"]] == [0.1, 0.3]
    for at in document["curve"]:
        assert list(at) == ["radius", "certified", "attacked"]
        assert 0 <= at["certified"] <= at["attacked"] <= document["clean"]
    for at in document["universal"]:
        assert list(at) == ["radius", "signed", "broken"]
        assert at["signed"] is False
    for flag in document["flags"]:
        assert list(flag) == ["name", "raised", "means", "value"]
        assert flag["name"] in KINDS


def test_a_limit_and_a_box_are_kept(capsys: Capture) -> None:
    assert audit(*NET, "--radii", "0.2", "--limit", "30", "--box", "-4,4", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["n"], document["box"]) == (30, [-4.0, 4.0])


def test_a_model_without_gradients_is_audited_by_queries(capsys: Capture) -> None:
    assert audit("mymodels:steps", "data.npz", "--radii", "1", "--black-box", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["universal"] == []
    assert {flag["name"] for flag in document["flags"]} >= {"queries-only", "no-certificate"}
    assert audit("mymodels:steps", "data.npz", "--radii", "1", "--black-box") == 0
    assert "! queries-only" in capsys.readouterr().out


def test_a_certificate_above_an_attack_is_exit_status_1(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_long(model: Any, x: torch.Tensor, y: torch.Tensor, **_: Any) -> torch.Tensor:
        return torch.full((len(x),), 99.0, dtype=torch.float64)

    monkeypatch.setattr(choice, "crown_radius", too_long)
    assert audit("mymodels:three", "three.npz", "--radii", "50") == 1
    assert "certified-above-attacked: points " in one_line(capsys)


def test_an_audit_that_is_interrupted_has_nothing_to_resume(capsys: Capture) -> None:
    assert audit("mymodels:stopped", "data.npz") == 130
    assert one_line(capsys) == "tacit: interrupted"


def test_a_model_may_import_what_lies_beside_it_in_its_forward(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    before = list(sys.path)
    assert audit("mymodels:late", "three.npz", "--radii", "0.1") == 0
    assert sys.path == before
    printed = capsys.readouterr().out
    assert "certificate: none" in printed
    (row,) = [line for line in printed.splitlines() if line.startswith("    0.1 ")][:1]
    assert "–" in row, "no certificate is no certified accuracy of 0"


def test_a_model_that_is_right_nowhere_is_told(capsys: Capture) -> None:
    np.savez("wrong.npz", x=POINTS.x.numpy(), y=-POINTS.y.numpy())
    assert audit("net.safetensors", "wrong.npz", "--radii", "0.1") == 0
    assert "no point is right" in capsys.readouterr().out
