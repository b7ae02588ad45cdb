"""Models of an audit: what MODEL may be, and one clear line for what it may not."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tacit.auditing.subject import load_model, subject_of
from tacit.data import min2024_mixture
from tacit.errors import CallError, RunError
from tacit.estimator import PolyReLUClassifier
from tacit.nets import (
    MultiClassNet,
    PolyReLUNet,
    TwoLayerNet,
    average_net,
    load_net,
    prop48_net,
)

MIXTURE = min2024_mixture(D=20, K=4, K1=2, alpha=0.1)
X = MIXTURE.sample(5, torch.Generator().manual_seed(0)).x

WV = {"w": torch.ones(2, 3), "v": torch.ones(2)}
TWO, MANY = {"kind": "two_layer", "p": "1"}, {"kind": "multi_class"}

MODELS = """
import torch
from torch import nn
from tacit.nets import TwoLayerNet

class Small(nn.Linear):
    def __init__(self):
        super().__init__(20, 3)
        self.eval()

def make():
    print("made")
    return Small()

def net():
    return TwoLayerNet(torch.ones(2, 20), torch.tensor([1.0, -1.0]))

def fails():
    raise RuntimeError("out of luck")

def leaves():
    raise SystemExit(3)

def nothing():
    pass

def needs(size):
    return Small()

ready = make()
number = 7
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(
        tmp_path / "nowhere"
    )  # restores sys.path and forgets what was imported
    monkeypatch.delitem(__import__("sys").modules, "mymodels", raising=False)
    Path("mymodels.py").write_text(MODELS)
    Path("broken.py").write_text("1 / 0")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "kind"),
    [("Small", nn.Linear), ("make", nn.Linear), ("ready", nn.Linear), ("net", TwoLayerNet)],
)
def test_a_model_may_be_named_by_what_makes_it(
    here: Path, name: str, kind: type, capsys: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(load_model(f"mymodels:{name}"), kind)
    assert capsys.readouterr().out == "", "what the user's code prints goes to stderr"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            "nothing.safetensors",
            "there is no model 'nothing.safetensors': MODEL is a .safetensors file or",
        ),
        ("C:\\model", "there is no model"),
        ("mymodels.py", "mymodels.py is Python code: write mymodels:NAME, where NAME makes"),
        ("deep/mymodels.py:make", "write mymodels:make in its folder"),
        (".", ". is a directory"),
        ("nowhere_at_all:make", "importing nowhere_at_all failed: ModuleNotFoundError"),
        ("broken:make", "importing broken failed: ZeroDivisionError: division by zero"),
        ("mymodels:absent", "mymodels has no 'absent'"),
        ("mymodels:fails", "calling mymodels:fails() failed: RuntimeError: out of luck"),
        ("mymodels:leaves", "calling mymodels:leaves() failed: SystemExit: 3"),
        ("mymodels:nothing", "mymodels:nothing() returned NoneType: it must return a torch module"),
        ("mymodels:needs", "calling mymodels:needs() failed: TypeError"),
        ("mymodels:number", "mymodels:number is int: it must be a torch module or make one"),
    ],
)
def test_a_model_that_cannot_be_had_is_one_line(here: Path, text: str, answer: str) -> None:
    with pytest.raises(CallError) as caught:
        load_model(text)
    assert answer in str(caught.value)


@pytest.mark.parametrize("net", [average_net(MIXTURE), prop48_net(MIXTURE)])
def test_a_saved_net_is_read(here: Path, net: TwoLayerNet | MultiClassNet) -> None:
    tensors, meta = net.state()
    save_file(tensors, "net.safetensors", metadata=meta)
    assert torch.equal(load_model("net.safetensors")(X), net(X))


def test_the_net_of_a_saved_classifier_is_read(here: Path) -> None:
    y = torch.arange(len(X)) % 3
    model = PolyReLUClassifier(width=5, max_iter=2, tol=10.0, n_iter_no_change=1).fit(X, y)
    model.save("head.safetensors")
    scores = load_model("head.safetensors")(X)
    assert torch.allclose(scores, torch.from_numpy(model.decision_function(X)))


def test_a_saved_classifier_of_subclasses_is_read_as_its_head(here: Path) -> None:
    y = torch.arange(len(X)) % 2
    model = PolyReLUClassifier(
        width=5, max_iter=2, tol=10.0, n_iter_no_change=1, supervision="subclasses"
    )
    model.fit(X, y, subclass=torch.arange(len(X)) % 4).save("head.safetensors")
    head = load_model("head.safetensors")
    assert (len(head.owner), head(X).shape[1]) == (4, 2)
    assert torch.equal(head(X), model.to_module()(X))
    assert subject_of(head, X, "cpu", gradient=True).outputs == 2


def test_a_saved_classifier_without_its_outputs_is_damaged(here: Path) -> None:
    net = PolyReLUNet(torch.ones(2, 20), torch.ones(3, 2))
    tensors, meta = net.state()
    save_file(tensors, "head.safetensors", metadata=meta | {"kind": "poly_relu_classifier"})
    with pytest.raises(CallError, match="is damaged: no class of each output"):
        load_model("head.safetensors")


class Bomb:
    """Runs when it is unpickled."""

    def __reduce__(self) -> Any:
        return (Path("ran").touch, ())


@pytest.mark.parametrize("name", ["a.pt", "a.pth", "a.pkl", "a.safetensors", "a"])
@pytest.mark.parametrize("how", ["torch", "torch legacy", "pickle", "pickle 0"])
def test_a_pickle_is_refused_unread(here: Path, name: str, how: str) -> None:
    if how.startswith("torch"):
        torch.save(Bomb(), name, _use_new_zipfile_serialization=how == "torch")
    else:
        Path(name).write_bytes(pickle.dumps(Bomb(), protocol=0 if how == "pickle 0" else 4))
    plain = how == "pickle 0" and Path(name).suffix in ("", ".safetensors")
    for load in (load_model, load_net):
        with pytest.raises((CallError, RunError)) as caught:
            load(name)
        told = str(caught.value)
        if (
            not plain
        ):  # a pickle of text has no head that tells, and is no safetensors file either way
            assert isinstance(caught.value, CallError)
            assert "unpickling can run any code" in told
            assert "safetensors.torch.save_file(" in told
            assert "module:callable" in told
    assert not Path("ran").exists()


def test_a_net_whose_header_begins_like_a_pickle_is_read(here: Path) -> None:
    # the first bytes are the header's length: 0x...80 for one of 128, 384, ... bytes
    for pad in range(300):
        save_file(
            {"w": torch.ones(1, 2), "v": torch.ones(1)},
            "net.safetensors",
            metadata={"kind": "two_layer", "p": "1", "pad": "x" * pad},
        )
        if Path("net.safetensors").read_bytes()[0] == 0x80:
            break
    else:
        pytest.fail("no header of such a length")
    assert isinstance(load_net("net.safetensors"), TwoLayerNet)


@pytest.mark.parametrize(
    ("tensors", "meta", "answer"),
    [
        ({"w": torch.ones(1, 2)}, {"kind": "two_layer", "p": "1"}, "without its tensor 'v'"),
        ({"w": torch.ones(1, 2)}, None, "kind None"),
        (
            {"w": torch.ones(1, 2), "v": torch.ones(1)},
            {"kind": "two_layer", "p": "x"},
            "p='x' is not",
        ),
        ({**WV}, {"kind": "two_layer", "p": "inf"}, "p='inf' is not a finite number"),
        ({**WV}, {"kind": "odd"}, "kind 'odd'; tacit knows"),
        ({**WV, "v": torch.ones(3)}, TWO, r"tensor 'v' is torch.float32 of shape \(3,\)"),
        ({**WV, "v": torch.ones(1)}, TWO, "tensor 'v'"),
        ({**WV, "v": torch.ones(2).double()}, TWO, "tensor 'v' is torch.float64"),
        ({**WV, "b": torch.ones(1)}, TWO, "tensor 'b'"),
        ({**WV, "w": torch.ones(2)}, TWO, "tensor 'w'"),
        ({**WV, "w": torch.ones(2, 3, dtype=torch.int32)}, TWO, "tensor 'w' is torch.int32"),
        ({"w": torch.ones(2, 1, 3), "labels": torch.tensor([0.0, 1.0])}, MANY, "'labels' holds"),
        ({"w": torch.ones(2, 1, 3), "labels": torch.ones(2)}, MANY, "'labels' holds"),
        ({"w": torch.ones(2, 1, 3), "labels": torch.ones(3)}, MANY, "tensor 'labels' is"),
    ],
)
def test_a_file_that_is_no_net_is_one_line(
    here: Path, tensors: dict, meta: Any, answer: str
) -> None:
    save_file(tensors, "net.safetensors", metadata=meta)
    with pytest.raises(CallError, match=answer):
        load_model("net.safetensors")


def test_an_empty_file_is_no_pickle(here: Path) -> None:
    for name in ("a.pt", "a.safetensors"):
        Path(name).touch()
        with pytest.raises(CallError, match="is empty"):
            load_model(name)


class Odd(nn.Module):
    """Does with its input what it is told."""

    def __init__(self, do: Any) -> None:
        super().__init__()
        self.do = do
        self.eval()

    def forward(self, x: torch.Tensor) -> Any:
        return self.do(x)


@pytest.mark.parametrize(
    ("model", "answer"),
    [
        (nn.Linear(20, 2), r"train mode.*call model.eval\(\) first"),
        (nn.Sequential(nn.Linear(20, 2).eval(), nn.Dropout()), "train mode"),
        (nn.Linear(20, 2).half().eval(), r"computes in torch.float16.*call model.float\(\)"),
        (Odd(lambda x: x[:, :3] - x.mean(0)[:3]), "mixes the points of a batch"),
        (Odd(lambda x: x[:, :3] / x.norm()), "mixes the points of a batch"),
        (Odd(lambda x: (x > 0).long()), "returned torch.int64"),
        (Odd(lambda x: [][0]), "the model failed: IndexError: list index out of range"),
        (Odd(lambda x: torch.from_numpy(x.numpy())), "gives scores, but.*--black-box"),
        (nn.Linear(7, 2).eval(), r"does not take points of shape \(20,\): RuntimeError: mat1"),
        (TwoLayerNet(torch.ones(2, 7), torch.ones(2)), "the net takes 7 features, x has 20"),
        (PolyReLUNet(torch.ones(2, 7), torch.ones(3, 2)), "the net takes 7 features, x has 20"),
        (PolyReLUNet(torch.ones(4, 2, 20), torch.ones(4, 3, 2)), "ensemble dimensions"),
        (TwoLayerNet(torch.ones(3, 2, 20), torch.ones(3, 2)), "ensemble dimensions"),
        (Odd(lambda x: (x.sum(1) > 0).float()), "no gradient.*--black-box"),
        (Odd(lambda x: x.sum(1) * torch.nan), "NaN"),
        (Odd(lambda x: x.sum()), "returned shape"),
        (Odd(lambda x: x[:1]), "returned shape"),
        (Odd(lambda x: {"logits": x}), "returned dict"),
        (TwoLayerNet(torch.full((2, 20), torch.nan), torch.ones(2)), "output holds NaN"),
        ("text", "the model is str"),
    ],
)
def test_a_model_that_does_not_fit_is_one_line(model: Any, answer: str) -> None:
    with pytest.raises(CallError, match=answer) as caught:
        subject_of(model, X, "cpu", gradient=True)
    assert "\n" not in str(caught.value)


def test_a_model_without_gradient_is_taken_by_queries() -> None:
    model = Odd(lambda x: (x.sum(1) > 0).float() - 0.5)
    assert subject_of(model, X, "cpu", gradient=False).outputs == 1


@pytest.mark.parametrize(
    ("model", "outputs", "dtype"),
    [
        (nn.Linear(20, 1).eval(), 1, torch.float32),
        (nn.Linear(20, 5).double().eval(), 5, torch.float64),
        (average_net(MIXTURE), 1, torch.float64),
        (prop48_net(MIXTURE), 1, torch.float64),
        (lambda x: x.sum(1), 1, torch.float64),
    ],
)
def test_outputs_and_type_are_the_models_own(model: Any, outputs: int, dtype: torch.dtype) -> None:
    subject = subject_of(model, X, "cpu", gradient=True)
    assert (subject.outputs, subject.dtype) == (outputs, dtype)


@pytest.mark.parametrize(
    "model",
    [
        Odd(lambda x: x[:, :3] + 0.1 * torch.randn(len(x), 3)),  # random: another flag tells
        Odd(lambda x: (1e6 + x[:, :3].float()) - 1e6),  # coarse
        Odd(lambda x: (x @ torch.ones(20, 1).double()).squeeze()),
    ],
)
def test_a_model_that_takes_each_row_alone_is_taken(model: Any) -> None:
    for n in (1, 5):
        assert subject_of(model, X[:n], "cpu", gradient=True).outputs in (1, 3)


def test_points_beyond_the_models_type_are_told() -> None:
    with pytest.raises(CallError, match="x reaches 1e"):
        subject_of(nn.Linear(20, 2).eval(), 1e200 * X / X.abs().max(), "cpu", gradient=True)


def test_points_of_half_precision_are_taken() -> None:
    assert subject_of(lambda x: x.sum(1), X.half(), "cpu", gradient=True).dtype == torch.float32
