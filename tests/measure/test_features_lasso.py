"""Lasso paths against scikit-learn, closed forms, dense matrices of convolutions, and their own optimality."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.linear_model
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import CallError
from tacit.measure.features import ConvDictionary, LassoPath, lasso_path, sparsity_at_error
from tacit.measure.features import dictionaries as dictionaries
from tacit.measure.features.dictionaries import maps
from tacit.measure.features.lasso import solve

DOUBLE = torch.float64
LAYOUTS = st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(1, 4), st.integers(4, 7))


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def convolution(stride: int, padding: int, kernel: int, seed: int = 0) -> ConvDictionary:
    return ConvDictionary(normal(5, 2, kernel, min(kernel, 3), seed=seed), stride, padding)


def matrix_of(dictionary: ConvDictionary, targets: torch.Tensor) -> torch.Tensor:
    """Its columns are what nn.ConvTranspose2d makes of the unit vectors."""
    W = maps(dictionary, targets)
    shape = W.analyse(targets[:1]).shape[1:]
    return W.decode(torch.eye(shape.numel(), dtype=DOUBLE).unflatten(1, shape)).flatten(1).T


def test_decoding_is_conv_transpose_and_analysing_the_layer_itself():
    dictionary = convolution(2, 1, 3)
    x = normal(3, 2, 8, 7)
    W = maps(dictionary, x)
    layer = torch.nn.Conv2d(2, 5, 3, stride=2, padding=1, bias=False, dtype=DOUBLE)
    layer.weight.data = dictionary.weight
    torch.testing.assert_close(W.analyse(x), layer(x).detach())
    back = torch.nn.ConvTranspose2d(5, 2, 3, stride=2, padding=1, bias=False, dtype=DOUBLE)
    back.weight.data = dictionary.weight
    y = normal(3, 5, 4, 4)
    torch.testing.assert_close(W.decode(y), back(y, output_size=[8, 7]).detach())


@given(LAYOUTS, st.integers(0, 100))
def test_analysing_is_the_transpose_of_decoding(layout: tuple[int, ...], seed: int):
    stride, padding, kernel, size = layout
    x = normal(3, 2, size, size + 1, seed=seed)
    for dictionary in (convolution(stride, padding, kernel, seed), normal(7, 11, seed=seed)):
        if isinstance(dictionary, torch.Tensor):
            x = normal(3, 7, seed=seed)
        W = maps(dictionary, x)
        y = torch.randn_like(W.analyse(x))
        torch.testing.assert_close((W.decode(y) * x).sum(), (y * W.analyse(x)).sum())


@given(LAYOUTS, st.integers(0, 100))
def test_the_norm_of_a_convolution_is_bounded_tightly(layout: tuple[int, ...], seed: int):
    stride, padding, kernel, size = layout
    x = normal(1, 2, size, size + 1, seed=seed)
    dictionary = convolution(stride, padding, kernel, seed)
    exact = float(torch.linalg.matrix_norm(matrix_of(dictionary, x), 2)) ** 2
    assert exact <= maps(dictionary, x).square_norm <= 1.03 * exact


def test_a_dense_path_is_scikit_learns():
    W, x = normal(30, 50), normal(4, 30, seed=1)
    found = lasso_path(W, x, lambdas=12, least=0.02, gap=1e-9, steps=50_000)
    assert found.solved.all()
    for i, target in enumerate(x.numpy()):
        # theirs is 1/(2 D) ||W y - x||^2 + alpha ||y||_1
        alphas = found.weights[:, i].numpy() / (2 * 30)
        _, codes, _ = sklearn.linear_model.lasso_path(
            W.numpy(), target, alphas=alphas, tol=1e-12, max_iter=100_000
        )
        errors = ((W.numpy() @ codes - target[:, None]) ** 2).sum(0) / (target**2).sum()
        np.testing.assert_allclose(found.error[:, i], errors, rtol=1e-4)
        np.testing.assert_array_equal(found.sparsity[:, i], (codes != 0).mean(0))


@pytest.mark.parametrize("layout", [(1, 1, 3), (2, 2, 4), (3, 0, 2)])
def test_a_convolutional_path_is_that_of_its_matrix(layout: tuple[int, int, int]):
    dictionary, x = convolution(*layout), normal(6, 2, 7, 6, seed=1)
    choice = {"lambdas": 6, "least": 0.05, "gap": 1e-8, "steps": 50_000}
    found = lasso_path(dictionary, x, **choice)
    wanted = lasso_path(matrix_of(dictionary, x), x.flatten(1), **choice)
    assert found.solved.all()
    assert wanted.solved.all()
    for name in ("weights", "sparsity", "error"):
        torch.testing.assert_close(getattr(found, name), getattr(wanted, name), rtol=1e-4, atol=0)


@settings(max_examples=10)
@given(st.integers(0, 100), st.floats(0.1, 1000.0))
def test_an_orthonormal_dictionary_thresholds(seed: int, scale: float):
    W = torch.linalg.qr(normal(12, 12, seed=seed)).Q
    x = scale * normal(3, 12, seed=seed + 1)
    found = lasso_path(W, x, lambdas=7, gap=1e-10)
    c = x @ W
    torch.testing.assert_close(found.weights[0], 2 * c.abs().amax(1))
    ratio = found.weights[1:] / found.weights[:-1]
    torch.testing.assert_close(ratio, torch.full_like(ratio, 0.01 ** (1 / 6)))
    for i, weights in enumerate(found.weights):
        kept = c.abs() > weights.unsqueeze(1) / 2 * (1 + 1e-12)
        lost = torch.minimum(c.abs(), weights.unsqueeze(1) / 2).square().sum(1)
        torch.testing.assert_close(found.error[i], lost / x.square().sum(1))
        torch.testing.assert_close(found.sparsity[i], kept.double().mean(1))


@settings(max_examples=12)
@given(st.integers(0, 100), st.sampled_from([0.5, 0.1, 0.05]), st.booleans())
def test_solutions_are_optimal_and_gaps_bound_the_way_to_them(
    seed: int, fraction: float, dense: bool
):
    dictionary = normal(20, 30, seed=seed) if dense else convolution(1, 1, 3, seed)
    x = normal(3, 20, seed=seed + 1) if dense else normal(3, 2, 5, 4, seed=seed + 1)
    W = maps(dictionary, x)
    x = x / (2 * W.analyse(x).flatten(1).abs().amax()) / fraction
    start = torch.zeros_like(W.analyse(x))

    def value(y: torch.Tensor) -> torch.Tensor:
        return (W.decode(y) - x).flatten(1).square().sum(1) + y.flatten(1).abs().sum(1)

    best, error, gap = solve(W, x, start, 1e-9, 50_000)
    assert (gap <= 1e-9).all()
    rest = x - W.decode(best)
    slope = 2 * W.analyse(rest)
    assert float(slope.abs().max()) <= 1 + 1e-3  # |2 W'r| <= lambda, and its sign where y is not 0
    on = best.abs() > 1e-3 * best.abs().max()
    torch.testing.assert_close(slope[on], best.sign()[on], atol=1e-3, rtol=0)
    torch.testing.assert_close(
        error, rest.flatten(1).square().sum(1) / x.flatten(1).square().sum(1)
    )
    for steps in (1, 7, 40):
        early, _, gap = solve(W, x, start, 1e-9, steps)
        assert (gap >= -1e-12).all()
        assert (value(early) * (1 - gap) <= value(best) * (1 + 1e-12)).all()
        assert (value(early) >= value(best) * (1 - 1e-9)).all()


@settings(max_examples=4)
@given(st.integers(0, 100), st.floats(1e-3, 1e3))
def test_along_a_path_errors_fall_whatever_the_targets_scale(seed: int, scale: float):
    dictionary, x = convolution(1, 1, 3, seed), normal(3, 2, 6, 6, seed=seed + 1).float()
    choice = {"lambdas": 6, "least": 0.05}
    found = lasso_path(dictionary, x, **choice)
    assert found.solved.all()
    assert (found.error.diff(dim=0) < 0).all()
    assert (found.gap > -1e-6).all()
    assert (found.error[0] == 1).all()
    assert (found.sparsity[0] == 0).all()
    scaled = lasso_path(dictionary, scale * x, **choice)
    torch.testing.assert_close(scaled.weights, scale * found.weights, rtol=1e-5, atol=0)
    torch.testing.assert_close(scaled.error, found.error, rtol=1e-2, atol=0)


def test_targets_do_not_see_one_another(monkeypatch: pytest.MonkeyPatch):
    dictionary, x = convolution(1, 1, 3), normal(7, 2, 6, 6, seed=1)
    choice = {"lambdas": 5, "least": 0.1, "gap": 1e-6}
    together = lasso_path(dictionary, x, **choice)
    monkeypatch.setattr(dictionaries, "CACHED", 400)  # two targets at a time
    assert maps(dictionary, x).together == 2
    apart = lasso_path(dictionary, x, **choice)
    torch.testing.assert_close(apart.error, together.error, rtol=1e-4, atol=0)
    torch.testing.assert_close(apart.weights, together.weights)


def test_what_is_not_solved_is_told():
    dictionary, x = convolution(1, 1, 3), normal(4, 2, 6, 6, seed=1)
    short, whole = (lasso_path(dictionary, x, lambdas=5, steps=steps) for steps in (3, 5000))
    assert whole.solved.all()
    assert short.solved[0].all()
    assert not short.solved[1:].any()
    assert (short.gap[1:] > 1e-4).all()


def test_sparsity_at_an_error_is_read_between_the_points():
    error = torch.tensor([[1.0, 1.0, 1.0], [0.1, 0.5, 0.9], [0.01, 0.4, 0.01], [0.001, 0.3, 0.02]])
    share = torch.tensor([[0.0, 0.0, 0.0], [0.1, 0.2, 0.3], [0.2, 0.3, 0.4], [0.4, 0.5, 0.6]])
    error, share = error.double(), share.double()
    path = LassoPath(error, share, error, error, error > 0)
    found = sparsity_at_error(path, 0.01 * math.sqrt(10))
    # the middle of [.1, .01] in logarithms; never reached; between .9 and .01, though .02 comes after
    third = 0.3 + 0.1 * math.log(0.9 / (0.01 * math.sqrt(10))) / math.log(90)
    assert found.tolist() == pytest.approx([0.15, math.nan, third], nan_ok=True)
    assert sparsity_at_error(path, 0.01)[[0, 2]].tolist() == pytest.approx([0.2, 0.4])
    assert sparsity_at_error(path, 0.5)[1].item() == pytest.approx(0.2)
    for wrong in (0.0, 1.0, -1.0):
        with pytest.raises(CallError, match="error="):
            sparsity_at_error(path, wrong)


def test_the_better_dictionary_is_sparser_at_equal_error():
    W = torch.linalg.qr(normal(40, 40)).Q
    codes = normal(5, 40, seed=1) * (torch.arange(40) < 4)
    own, other = (
        lasso_path(D, codes @ W.T) for D in (W, torch.linalg.qr(normal(40, 40, seed=2)).Q)
    )
    assert (sparsity_at_error(own, 0.05) <= 0.1).all()
    assert (sparsity_at_error(other, 0.05) > 0.3).all()


def test_what_is_refused():
    W, x = normal(6, 9), normal(2, 6, seed=1)
    for wrong in ({"lambdas": 1}, {"least": 0.0}, {"least": 1.0}, {"gap": 0.0}, {"steps": 0}):
        with pytest.raises(CallError, match=next(iter(wrong))):
            lasso_path(W, x, **wrong)
    with pytest.raises(CallError, match="leave it out"):
        lasso_path(W, x * torch.tensor([[1.0], [0.0]]))
    with pytest.raises(CallError, match="targets holds NaN"):
        lasso_path(W, x * torch.nan)
    for dictionary, targets in (
        (W, normal(2, 7)),
        (W, normal(0, 6)),
        (W, normal(2, 6, 1, 1)),
        (convolution(1, 1, 3), normal(2, 3, 5, 5)),
    ):
        with pytest.raises(CallError, match="n at least 1"):
            lasso_path(dictionary, targets)
    with pytest.raises(CallError, match="give larger images"):
        lasso_path(convolution(1, 0, 4), normal(2, 2, 3, 3))


@pytest.mark.cuda
def test_on_a_gpu_float32_reaches_the_gap_and_the_same_path():
    dictionary, x = convolution(1, 1, 3), normal(20, 2, 16, 16, seed=1)
    here = lasso_path(dictionary, x, gap=1e-6, steps=50_000)
    there = lasso_path(dictionary, x.float().cuda())
    assert there.solved.all()
    torch.testing.assert_close(there.error.cpu(), here.error, rtol=1e-2, atol=0)
    torch.testing.assert_close(there.sparsity.cpu(), here.sparsity, rtol=0, atol=0.02)
