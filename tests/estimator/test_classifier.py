"""The classifier against what it is made of, and what its parameters mean."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit import PolyReLUClassifier
from tacit.errors import CallError, RunError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def quick(**changes: Any) -> PolyReLUClassifier:
    settings = {"width": 30, "max_iter": 25, "learning_rate": 0.02, "random_state": 0}
    return PolyReLUClassifier(**(settings | changes))


def digits(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X[:n] / 16, y[:n]


def by_hand(model: PolyReLUClassifier, X: np.ndarray) -> np.ndarray:
    """The scores from the formula, in numpy."""
    net, c = model.net_, X - model.centre_
    length = np.linalg.norm(c, axis=1, keepdims=True)
    w, v, b = (t.numpy() for t in (net.w, net.v, net.b))
    norms = np.linalg.norm(w, axis=1)
    if model.normalize_input:
        hidden = np.maximum(c @ w.T, 0) ** net.p / (norms * length) ** (net.p - 1)
    else:
        hidden = np.maximum(c / length @ w.T, 0) ** net.p / norms ** (net.p - 1)
    return hidden @ v.T + b


@pytest.mark.parametrize("p", [1, 2.5, 4])
@pytest.mark.parametrize("normalize_input", [True, False])
def test_scores_are_the_formula_of_the_paper(p: float, normalize_input: bool) -> None:
    X, y = digits(120)
    model = quick(p=p, normalize_input=normalize_input, max_iter=4).fit(X, y)
    scores = by_hand(model, X)
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-9, atol=1e-12)
    odds = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), odds / odds.sum(1, keepdims=True))
    assert (model.predict(X) == model.classes_[scores.argmax(1)]).all()
    np.testing.assert_allclose(model.centre_, X.mean(0))


@pytest.mark.parametrize("settings", [{}, {"p": 1}, {"loss": "exp"}, {"normalize_input": False}])
def test_digits_are_learnt(settings: dict[str, Any]) -> None:
    X, y = digits(1000)
    assert quick(max_iter=60, **settings).fit(X[:600], y[:600]).score(X[600:], y[600:]) > 0.9


def test_plain_descent_learns_too() -> None:
    X, y = digits()
    model = quick(optimizer="sgd", learning_rate=0.5, p=2, max_iter=60)
    assert model.fit(X, y).score(X, y) > 0.9


def test_two_classes_have_log_odds() -> None:
    X, y = make_blobs(60, centers=2, random_state=0)
    model = quick().fit(X, y)
    odds = model.decision_function(X)
    assert odds.shape == (60,)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-odds)))


def test_strings_are_labels() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = quick(max_iter=60).fit(X, names)
    assert set(model.predict(X)) <= set(names)
    assert model.score(X, names) > 0.9
    assert (model.subclass_labels_ == model.classes_).all()


def test_a_seed_repeats_and_torch_is_left_alone() -> None:
    X, y = digits(100)
    torch.manual_seed(5)
    before = torch.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype()
    first = quick(max_iter=3).fit(X, y)
    first.to_module()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (torch.get_num_threads(), torch.get_default_dtype()) == before[1:]
    torch.manual_seed(6)
    again, other = quick(max_iter=3).fit(X, y), quick(max_iter=3, random_state=1).fit(X, y)
    assert torch.equal(first.net_.w, again.net_.w)
    assert not torch.equal(first.net_.w, other.net_.w)


def test_numbers_are_those_of_X() -> None:
    X, y = digits(100)
    model = quick(max_iter=3).fit(X.astype(np.float32), y)
    assert model.net_.w.dtype == torch.float32
    assert model.predict_proba(X).dtype == np.float32
    whole = quick(max_iter=3).fit((16 * X).astype(int), y)
    assert whole.net_.w.dtype == torch.float64


def test_integer_weights_are_repetitions_even_of_discovered_subclasses() -> None:
    X, y = digits(60)
    weights = np.random.RandomState(0).randint(0, 3, 60)
    for settings in ({}, {"supervision": "discovered", "n_subclasses": 2}):
        weighted = quick(max_iter=5, **settings).fit(X, y, sample_weight=weights)
        repeated = quick(max_iter=5, **settings).fit(X.repeat(weights, 0), y.repeat(weights))
        np.testing.assert_allclose(weighted.centre_, repeated.centre_)
        np.testing.assert_allclose(
            weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-6, atol=1e-9
        )


def test_training_ends_when_the_loss_stops_falling() -> None:
    X, y = digits(200)
    model = quick(max_iter=300, tol=1e-2, n_iter_no_change=4).fit(X, y)
    curve = np.array(model.loss_curve_)
    assert model.n_iter_ == len(curve) < 300
    assert model.best_loss_ == curve.min()
    best = np.minimum.accumulate(curve)
    assert (curve[-4:] > best[-5:-1] - 1e-2).all()  # the last four gained less than tol
    with pytest.warns(ConvergenceWarning, match="max_iter=2 epochs"):
        quick(max_iter=2).fit(X, y)


def test_early_stopping_returns_the_best_net() -> None:
    X, y = digits(300)
    model = quick(early_stopping=True, validation_fraction=0.3, max_iter=40).fit(X, y)
    assert model.best_validation_score_ == max(model.validation_scores_)
    assert len(model.validation_scores_) == model.n_iter_
    assert model.best_validation_score_ > 0.8
    assert quick(max_iter=2).fit(X, y).best_validation_score_ is None


def test_a_warm_start_goes_on() -> None:
    X, y = digits(200)
    model = quick(warm_start=True, max_iter=5, learning_rate=5e-3).fit(X, y)
    first, centre = model.loss_curve_[-1], model.centre_
    model.fit(X[:150], y[:150])
    assert model.n_iter_ == 10
    assert model.loss_curve_[5] < 1.5 * first
    assert (model.centre_ == centre).all()
    with pytest.raises(CallError, match="p=2: the net that training goes on with has 3"):
        model.set_params(p=2).fit(X, y)


def test_a_warm_start_keeps_discovered_subclasses() -> None:
    X, y = digits(200)
    model = quick(warm_start=True, supervision="discovered", n_subclasses=2, max_iter=8).fit(X, y)
    owners, first = model.subclass_labels_, model.loss_curve_[-1]
    model.fit(X[20:], y[20:])
    assert (model.subclass_labels_ == owners).all()
    assert model.loss_curve_[8] < 1.5 * first


def test_a_warm_start_with_other_subclasses_is_refused(tmp_path: Path) -> None:
    X, y = digits(60)
    side = X[:, 20] > X[:, 20].mean()
    model = quick(warm_start=True, supervision="subclasses", max_iter=2)
    model.fit(X, y, subclass=np.where(side, "b", "a"))
    model.save(tmp_path / "head.safetensors")
    read = PolyReLUClassifier.load(tmp_path / "head.safetensors")
    for one in (model, read):
        assert one.subclasses_.tolist()[:2] == ["a", "b"]
        assert len(one.subclasses_) == len(one.subclass_labels_) == len(one.net_.v)
        with pytest.raises(CallError, match=r"were 'a', 'b', .*: give the same"):
            one.fit(X, y, subclass=np.where(side, "c", "b"))
        assert one.fit(X, y, subclass=np.where(side, "b", "a")).n_iter_ == 4


def test_subclasses_of_a_warm_start_are_those_of_each_class_and_of_rows_that_count() -> None:
    X, y = digits(60)
    y = (y > 4).astype(int)
    names = np.where(y == 1, "a", np.where(X[:, 20] > X[:, 20].mean(), "b", "a"))
    model = quick(warm_start=True, supervision="subclasses", max_iter=2)
    weights = np.ones(60)
    weights[:3] = 0
    model.fit(X, y, sample_weight=weights, subclass=np.where(weights > 0, names, "z"))
    assert model.subclasses_.tolist() == ["a", "b", "a"]
    assert model.subclass_labels_.tolist() == [0, 0, 1]
    with pytest.raises(CallError, match="are 'a', 'b', 'b', class by class"):
        model.fit(X, y, subclass=np.where(y == 1, "b", names))  # the same names, of other classes
    assert model.fit(X, y, subclass=names).n_iter_ == 4


def test_subclasses_that_a_file_cannot_hold_are_named(tmp_path: Path) -> None:
    X, y = digits(60)
    model = quick(supervision="subclasses", max_iter=2).fit(X, y, subclass=y.astype("S1"))
    with pytest.raises(CallError, match=r"subclass of type \|S1 .*relabel subclass"):
        model.save(tmp_path / "head.safetensors")


def test_partial_fit_goes_on_from_part_to_part_and_through_a_pickle() -> None:
    X, y = digits(300)
    whole, broken = quick(), quick()
    for _ in range(12):
        for part in (slice(0, 150), slice(150, 300)):
            whole.partial_fit(X[part], y[part], classes=np.arange(10))
            broken = pickle.loads(pickle.dumps(broken)).partial_fit(X[part], y[part], np.arange(10))
    assert torch.equal(whole.net_.w, broken.net_.w)
    assert whole.n_iter_ == 24
    assert whole.score(X, y) > 0.9
    whole.fit(X, y)  # anew
    assert whole.n_iter_ == 25


def test_wrong_calls_of_partial_fit() -> None:
    X, y = digits(100)
    with pytest.raises(CallError, match="first call to partial_fit"):
        quick().partial_fit(X, y)
    with pytest.raises(CallError, match="y holds 9, which is not among"):
        quick().partial_fit(X, y, classes=np.arange(9))
    model = quick().partial_fit(X, y, classes=np.arange(10))
    with pytest.raises(CallError, match="in the first call"):
        model.partial_fit(X, y, classes=np.arange(11))
    assert not hasattr(quick(supervision="discovered"), "partial_fit")
    with pytest.raises(AttributeError) as caught:
        quick(supervision="discovered").partial_fit(X, y, classes=np.arange(10))
    assert "supervision='labels'" in str(caught.value.__cause__)


def test_given_subclasses_add_up_to_their_classes() -> None:
    X, y = digits()
    model = quick(supervision="subclasses").fit(X, np.where(y % 2, "odd", "even"), subclass=y)
    assert model.net_.v.shape[0] == 10
    assert list(model.classes_) == ["even", "odd"]
    assert sorted(model.subclass_labels_) == ["even"] * 5 + ["odd"] * 5
    logits = model.net_(torch.tensor(X))
    for name, column in zip(model.classes_, model.predict_proba(X).T, strict=True):
        own = torch.tensor(model.subclass_labels_ == name)
        np.testing.assert_allclose(column, logits.softmax(1)[:, own].sum(1).numpy())
    assert model.score(X, np.where(y % 2, "odd", "even")) > 0.9


def test_subclasses_with_one_name_in_two_classes_are_two() -> None:
    X, y = make_blobs(90, centers=3, random_state=0)
    model = quick(supervision="subclasses").fit(X, y, subclass=np.zeros(90))
    assert model.net_.v.shape[0] == 3


def test_discovered_subclasses_are_the_clusters() -> None:
    rng = np.random.RandomState(0)
    cluster = np.arange(120) % 4
    X = 5 * np.eye(20)[cluster] + 0.1 * rng.randn(120, 20)
    model = quick(supervision="discovered").fit(X, cluster % 2)
    assert sorted(model.subclass_labels_) == [0, 0, 1, 1]
    found = model.net_(torch.tensor(X)).argmax(1).numpy()
    assert len({(a, b) for a, b in zip(found, cluster, strict=True)}) == 4


def test_in_a_pipeline_and_a_grid() -> None:
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), quick(max_iter=40))
    grid = GridSearchCV(pipeline, {"polyreluclassifier__p": [1, 3]}, cv=2).fit(X, y)
    assert grid.best_score_ > 0.8
    assert clone(grid.best_estimator_[-1]).get_params()["p"] in (1, 3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"p": 0.5}, r"p=0.5: it is a finite number >= 1 \(p = 1 is ReLU\)"),
        ({"p": float("nan")}, "p=nan"),
        ({"width": 0}, "width=0: it is a whole number >= 1"),
        ({"loss": "hinge"}, "loss='hinge': it is one of exp, logistic"),
        ({"optimizer": "lbfgs"}, "one of sgd, adam"),
        ({"learning_rate": 0.0}, "learning_rate=0.0: it is a finite number > 0"),
        ({"validation_fraction": 1.0}, "< 1"),
        ({"supervision": "none"}, "labels, subclasses, discovered"),
        ({"n_subclasses": 0}, "None, or a whole number >= 1"),
        ({"device": "tpu"}, "one of cpu, cuda, auto"),
    ],
)
def test_wrong_parameters_are_refused_in_words(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(CallError, match=words):
        quick(**settings).fit(*digits(50))


def test_bad_data_are_refused_in_words() -> None:
    X, y = digits(50)
    with pytest.raises(CallError, match="one class only"):
        quick().fit(X, np.zeros(50))
    with pytest.raises(CallError, match="all its features are constant"):
        quick().fit(np.ones((50, 3)), y)
    with pytest.raises(ValueError, match="every weight is zero"):
        quick().fit(X, y, sample_weight=np.zeros(50))
    with pytest.raises(CallError, match="subclass given"):
        quick().fit(X, y, subclass=y)
    with pytest.raises(CallError, match="subclass missing"):
        quick(supervision="subclasses").fit(X, y)
    with pytest.raises(NotFittedError):
        quick().predict(X)
    with pytest.raises(NotFittedError):
        quick().save("nowhere")
    with pytest.raises(RunError, match="smaller step"):
        quick(loss="exp", optimizer="sgd", learning_rate=1e6).fit(1e3 * X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_loss_that_blows_up_is_told(optimizer: str, dtype: type) -> None:
    X, y = digits(50)
    with pytest.raises(RunError, match=r"the loss is .* in epoch \d.*: take a smaller"):
        quick(optimizer=optimizer, learning_rate=1e30).fit(X.astype(dtype), y)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_rows_without_a_subclass_are_refused(missing: Any) -> None:
    X, y = digits(50)
    subclass = np.array(y, dtype=object if missing is None else float)
    subclass[7] = missing
    with pytest.raises(CallError, match=r"subclass holds (None|nan) in row 7 \(1 rows"):
        quick(supervision="subclasses").fit(X, y, subclass=subclass)


def test_constant_features_among_others_do_no_harm() -> None:
    X, y = digits(100)
    padded = np.column_stack([X, np.full(100, 1e6)])
    assert quick().fit(padded, y).score(padded, y) > 0.9


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there() -> None:
    X, y = digits(50)
    with pytest.raises(CallError, match="torch sees no GPU"):
        quick(device="cuda").fit(X, y)
    assert quick(device="auto", max_iter=2).fit(X, y).net_.w.device.type == "cpu"


def test_of_large_float32_weights_only_the_ratios_count() -> None:
    X = np.random.RandomState(0).randn(120, 4).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)

    def fitted(weights: np.ndarray) -> list[float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = PolyReLUClassifier(width=8, max_iter=3, random_state=0)
            return model.fit(X, y, sample_weight=weights).loss_curve_

    np.testing.assert_allclose(fitted(np.full(120, 1e37)), fitted(np.ones(120)), rtol=1e-4)
