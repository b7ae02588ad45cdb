"""Radii of the classifier: between brute force, closed forms, and points that must not break."""

from __future__ import annotations

from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs

from tacit import PolyReLUClassifier
from tacit.errors import CallError
from tacit.nets import PolyReLUNet

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SETTINGS: list[dict[str, Any]] = [
    {},
    {"normalize_input": False},
    {"supervision": "discovered", "n_subclasses": 2},
]
MORE: list[dict[str, Any]] = [{"p": 1}, {**SETTINGS[1], **SETTINGS[2]}]
NORMS = (1, 2, np.inf)


@pytest.fixture(autouse=True)
def without_type_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attacks are thousands of small calls; their annotations are enforced in their own tests."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def on_blobs(**settings: Any) -> tuple[PolyReLUClassifier, np.ndarray, np.ndarray]:
    """A small net on four blobs of three classes in the plane, off the origin."""
    X, y = make_blobs(80, centers=4, random_state=3, cluster_std=1.5)
    y, X = np.where(y == 3, 0, y), X + np.array([5.0, -3.0])
    start = {"width": 12, "max_iter": 25, "learning_rate": 0.05, "random_state": 0}
    return PolyReLUClassifier(**(start | settings)).fit(X, y), X[:10], y[:10]


def brute_force(model: PolyReLUClassifier, X: np.ndarray, y: np.ndarray, norm: float) -> np.ndarray:
    """The first step along each of many rays where the class is lost, 3 % apart: an upper bound."""
    angles = np.linspace(0, 2 * np.pi, 90, endpoint=False)
    ways = np.stack([np.cos(angles), np.sin(angles)], 1)
    ways /= np.linalg.norm(ways, ord=norm, axis=1, keepdims=True)
    steps = np.geomspace(1e-2, 60, 300)
    found = np.full(len(X), np.inf)
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        moved = x + steps[:, None, None] * ways
        kept = model.predict(moved.reshape(-1, 2)).reshape(len(steps), -1) == label
        lost = ~kept.all(1)
        found[i] = steps[lost.argmax()] if lost.any() else np.inf
    return np.where(model.predict(X) == y, found, 0.0)


@pytest.mark.parametrize("settings", SETTINGS)
def test_brute_force_lies_between_the_bounds(settings: dict[str, Any]) -> None:
    between(*on_blobs(**settings), norm=2)


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS + MORE)
@pytest.mark.parametrize("norm", NORMS)
def test_brute_force_lies_between_the_bounds_in_every_norm(
    settings: dict[str, Any], norm: float
) -> None:
    between(*on_blobs(**settings), norm=norm)


def between(model: PolyReLUClassifier, X: np.ndarray, y: np.ndarray, norm: float) -> None:
    """Certificates are never longer than what brute force finds, the attack finds about as much."""
    lower, upper = model.robust_radius(X, y, norm)
    wanted, right = brute_force(model, X, y, norm), model.predict(X) == y
    assert right.mean() > 0.7
    assert (lower <= wanted).all()
    assert (lower <= upper).all()
    # the attack is a search, and now and then stops at a boundary that is not the nearest
    assert (upper[right] < 1.02 * wanted[right]).mean() >= 0.8
    assert not lower[~right].any()
    assert not upper[~right].any()
    assert (lower[right] > 0).mean() > 0.7
    assert np.median(lower[right] / upper[right]) > 0.4


@pytest.mark.slow
@pytest.mark.parametrize("normalize_input", [True, False])
@pytest.mark.parametrize("p", [1.0, 3.0])
def test_a_half_space_has_its_closed_form(p: float, normalize_input: bool) -> None:
    """Two opposite neurons, one a class: the boundary is c_1 = 0, for both layers and every p."""
    centre = np.array([1.0, 2.0, 3.0])
    model = PolyReLUClassifier(p=p, normalize_input=normalize_input)
    w = torch.tensor([[1.0, 0, 0], [-1.0, 0, 0]], dtype=torch.float64)
    model.net_ = PolyReLUNet(
        w,
        torch.eye(2, dtype=torch.float64),
        torch.zeros(2, dtype=torch.float64),
        p,
        torch.tensor(centre),
        normalize_input,
        not normalize_input,
    )
    model.classes_, model.centre_, model.n_features_in_ = np.array([4, 7]), centre, 3
    model.subclass_labels_, model.loss_curve_ = model.classes_, [0.0]
    X = centre + np.random.RandomState(0).randn(6, 3)
    y = np.where(X[:, 0] > 1, 4, 7)
    wanted = np.abs(X[:, 0] - 1)
    for norm in NORMS:
        lower, upper = model.robust_radius(X, y, norm)
        assert (lower <= wanted * (1 + 1e-9)).all()
        np.testing.assert_allclose(upper, wanted, rtol=1e-2)
        if norm == 2 and p == 1:
            assert (lower >= 0.99 * wanted).all()
    wrong, _ = model.robust_radius(X, 11 - y)
    assert (wrong == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("normalize_input", [True, False])
def test_nothing_inside_the_certified_radius_breaks_a_digit(normalize_input: bool) -> None:
    X, y = load_digits(return_X_y=True)
    X = X / 16
    model = PolyReLUClassifier(
        width=60, max_iter=15, learning_rate=0.01, random_state=0, normalize_input=normalize_input
    ).fit(X[:500], y[:500])
    X, y = X[500:505], y[500:505]
    lower, upper = model.robust_radius(X, y)
    right = model.predict(X) == y
    assert (lower[right] > 0).all()
    assert (lower <= upper).all()
    module, rng = model.to_module(), np.random.RandomState(0)
    for x, label, radius in zip(X[right], y[right], lower[right], strict=True):
        ways = rng.randn(500, 64)
        leaf = torch.tensor(x[None], requires_grad=True)
        scores = module(leaf)[0]
        others = torch.where(torch.arange(10) == int(label), -torch.inf, scores).amax()
        (gradient,) = torch.autograd.grad(scores[int(label)] - others, leaf)
        ways[0] = -gradient.numpy()  # the worst way to first order
        ways *= radius / np.linalg.norm(ways, axis=1, keepdims=True)
        assert (model.predict(x + ways) == label).all()


def test_labels_that_were_never_seen_are_refused() -> None:
    model, X, y = on_blobs()
    with pytest.raises(CallError, match="y holds 9, which is not among the classes"):
        model.robust_radius(X, y + 9)
    with pytest.raises(CallError, match="3"):
        model.robust_radius(X, y, norm=3)
    with pytest.raises(CallError, match="norm None: choose 1, 2, inf"):
        model.robust_radius(X, y, norm=None)


def test_norms_may_be_spelt_with_their_letter() -> None:
    model, X, y = on_blobs()
    for name, order in (("l1", 1), ("l2", 2), ("linf", np.inf)):
        spelt = model.robust_radius(X[:1], y[:1], norm=name)
        assert np.array_equal(spelt, model.robust_radius(X[:1], y[:1], norm=order))
