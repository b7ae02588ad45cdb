"""The fitted classifier as a torch module, a safetensors file, and an ONNX graph."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, safe_open, save_file
from sklearn.datasets import load_digits, load_iris

from tacit import PolyReLUClassifier
from tacit.attack import minimal
from tacit.errors import CallError, RunError, TacitError
from tacit.nets import load_net

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SETTINGS: list[dict[str, Any]] = [
    {},
    {"p": 1},
    {"p": 2.5, "normalize_input": False},
    {"supervision": "discovered", "n_subclasses": 3},
]
NAMES = np.array(["nul", "één", "two", "3", "four", "five", "six", "seven", "eight", "nine"])


def fitted(**settings: Any) -> tuple[PolyReLUClassifier, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    start = {"width": 25, "max_iter": 5, "learning_rate": 0.02, "random_state": 0}
    return PolyReLUClassifier(**(start | settings)).fit(X[:200] / 16, NAMES[y[:200]]), X[:60] / 16


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_module_gives_the_scores(settings: dict[str, Any]) -> None:
    model, X = fitted(**settings)
    module = model.to_module()
    np.testing.assert_allclose(
        module(torch.tensor(X)).detach().numpy(), model.decision_function(X), rtol=1e-9
    )
    with torch.no_grad():
        module.out.bias.add_(1e3 * torch.arange(len(module.out.bias)))
        module.centre.add_(1.0)
    assert np.abs(model.decision_function(X)).max() < 1e3  # it is a copy


@pytest.mark.slow
def test_the_module_goes_behind_a_backbone_and_can_be_attacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # an attack is many calls
    model, X = fitted()
    backbone = torch.nn.Linear(64, 64, bias=False, dtype=torch.float64)
    with torch.no_grad():
        backbone.weight.copy_(2 * torch.eye(64))
    whole = torch.nn.Sequential(backbone, model.to_module()).eval()
    y = torch.tensor(model.decision_function(X[:3]).argmax(1))
    half = minimal(whole, torch.tensor(X[:3] / 2), y).radius.numpy()
    _, upper = model.robust_radius(X[:3], model.predict(X[:3]))
    np.testing.assert_allclose(2 * half, upper, rtol=0.02)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_file_gives_the_classifier_back(settings: dict[str, Any], tmp_path: Path) -> None:
    model, X = fitted(**settings)
    model.save(tmp_path / "head.safetensors")
    back = PolyReLUClassifier.load(tmp_path / "head.safetensors")
    assert back.get_params() == model.get_params()
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert back.classes_.dtype == model.classes_.dtype
    assert (back.subclass_labels_ == model.subclass_labels_).all()
    assert (back.n_iter_, back.loss_curve_) == (model.n_iter_, model.loss_curve_)
    scores = load_net(tmp_path / "head.safetensors").double()(torch.from_numpy(X).double())
    assert np.allclose(scores.softmax(1), model.predict_proba(X), atol=1e-5)


def test_names_of_features_and_types_of_labels_survive(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    for labels in (y, y > 1, y.astype("float32"), y.map({0: "a", 1: "b", 2: "c"}).astype(object)):
        model = PolyReLUClassifier(width=5, max_iter=2, random_state=np.random.RandomState(0))
        model.fit(X, labels).save(tmp_path / "iris")
        back = PolyReLUClassifier.load(tmp_path / "iris")
        assert list(back.feature_names_in_) == list(X.columns)
        assert back.classes_.tolist() == model.classes_.tolist()
        assert back.random_state is None
        assert (back.predict(X) == model.predict(X)).all()


def test_training_goes_on_after_loading(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    model = PolyReLUClassifier(width=5, max_iter=2, random_state=0).fit(X, y)
    model.save(tmp_path / "iris")
    back = PolyReLUClassifier.load(tmp_path / "iris").partial_fit(X, y)
    assert torch.equal(back.net_.w, model.partial_fit(X, y).net_.w)
    assert back.n_iter_ == 3


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, dict[str, torch.Tensor], dict[str, str]]:
    """A file, its tensors and its metadata, to be damaged."""
    path = tmp_path / "head.safetensors"
    fitted()[0].save(path)
    with safe_open(path, framework="pt") as file:
        return path, load_file(path), file.metadata()


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("kind", "poly_relu", "of kind 'poly_relu' and no PolyReLUClassifier"),
        ("classes", "[", "metadata cannot be read"),
        ("classes", '{"dtype": "V8", "values": [1, 2]}', "metadata cannot be read"),
        ("classes", '{"dtype": "<i8", "values": [1, 2]}', "10 outputs, 10 of them"),
        ("outputs", "[0, 1]", "2 of them with a class"),
        ("parameters", '{"q": 3}', "metadata cannot be read"),
        ("parameters", '{"p": 0.5}', "metadata cannot be read"),
        ("features", '["a", "b"]', "2 names of 64 features"),
        ("losses", "[]", "0 epochs"),
        ("p", "0.3", r"p=0\.3: PolyReLU needs a finite p >= 1"),
    ],
)
def test_damaged_metadata_are_refused(saved: Any, key: str, value: str, words: str) -> None:
    path, tensors, meta = saved
    save_file(tensors, path, metadata=meta | {key: value})
    with pytest.raises(RunError, match=words) as caught:
        PolyReLUClassifier.load(path)
    assert "\n" not in str(caught.value)


def test_damaged_tensors_are_refused(saved: Any) -> None:
    path, tensors, meta = saved
    changes = [
        ({"w": tensors["w"] * float("nan")}, "'w' holds NaN or inf"),
        ({"centre": tensors["centre"][:3].contiguous()}, "tensor 'centre'"),
        ({"b": tensors["b"].float()}, "tensor 'b'"),
    ]
    for change, words in changes:
        save_file(tensors | change, path, metadata=meta)
        with pytest.raises(RunError, match=words):
            PolyReLUClassifier.load(path)
    for name in ("w", "v", "b", "centre"):
        save_file({k: t for k, t in tensors.items() if k != name}, path, metadata=meta)
        with pytest.raises(RunError, match=f"tensor '{name}'"):
            PolyReLUClassifier.load(path)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    model, _ = fitted()
    path = tmp_path / "head.pkl"
    path.write_bytes(pickle.dumps(model))
    with pytest.raises(CallError, match="is a pickle"):
        PolyReLUClassifier.load(path)
    model.save(tmp_path / "head")
    whole = (tmp_path / "head").read_bytes()
    (tmp_path / "head").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunError, match="no readable safetensors file"):
        PolyReLUClassifier.load(tmp_path / "head")
    with pytest.raises(TacitError, match="nothing here"):
        PolyReLUClassifier.load(tmp_path / "nothing here")
    with pytest.raises(CallError, match=r"is a folder: give the file that .*save"):
        PolyReLUClassifier.load(tmp_path)
    other = tmp_path / "other.safetensors"
    save_file({"weight": torch.ones(2)}, other)
    with pytest.raises(RunError, match=r"tensors of something else.*give a file that .*save wrote"):
        PolyReLUClassifier.load(other)
    tensors, meta = model.net_.state()
    save_file(tensors, other, metadata=meta)
    with pytest.raises(RunError, match=r"a net of kind 'poly_relu'.*load_net"):
        PolyReLUClassifier.load(other)
    with pytest.raises(RunError, match="cannot be written"):
        model.save(tmp_path / "no folder" / "head")


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_onnx_graph_gives_labels_and_probabilities(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    onnx = pytest.importorskip("onnx")
    reference = pytest.importorskip("onnx.reference")
    model, X = fitted(**settings)
    model.export_onnx(tmp_path / "head.onnx")
    run = reference.ReferenceEvaluator(onnx.load(tmp_path / "head.onnx"))
    X = np.concatenate([X, model.centre_[None]])  # the centre has no direction
    label, probabilities = run.run(None, {"X": X.astype(np.float32)})
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=2e-5)
    assert [str(name) for name in label] == [str(name) for name in model.predict(X)]


@pytest.mark.parametrize("kind", [np.int64, np.float32, bool])
def test_numbers_stay_numbers_in_the_graph(kind: type, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    reference = pytest.importorskip("onnx.reference")
    X, y = load_iris(return_X_y=True)
    model = PolyReLUClassifier(width=5, max_iter=3, random_state=0).fit(X, y.astype(kind))
    model.export_onnx(tmp_path / "iris.onnx")
    run = reference.ReferenceEvaluator(onnx.load(tmp_path / "iris.onnx"))
    (label, _) = run.run(None, {"X": X.astype(np.float32)})
    assert (label == model.predict(X)).mean() > 0.98  # float32 may tip a tie
    assert label.dtype == (np.float32 if kind is np.float32 else np.int64)


def test_without_onnx_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model, _ = fitted()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(CallError, match=r"pip install 'tacit\[onnx\]'"):
        model.export_onnx(tmp_path / "head.onnx")
