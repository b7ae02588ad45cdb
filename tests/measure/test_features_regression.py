"""Distances from the span of a dictionary against numpy's least squares."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import CallError
from tacit.measure.features import ConvDictionary, regression_error
from tacit.measure.features.dictionaries import maps

DOUBLE = torch.float64


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def by_numpy(W: torch.Tensor, x: torch.Tensor) -> np.ndarray:
    rows = x.flatten(1).numpy()
    codes = np.linalg.lstsq(W.numpy(), rows.T, rcond=None)[0]
    return ((W.numpy() @ codes - rows.T) ** 2).sum(0) / (rows**2).sum(1)


@given(st.integers(0, 100), st.integers(1, 14), st.integers(1, 10))
def test_dense_is_numpys(seed: int, k: int, rank: int):
    W = normal(10, min(rank, k), seed=seed) @ normal(min(rank, k), k, seed=seed + 1)
    x = normal(4, 10, seed=seed + 2)
    found = regression_error(W, x)
    np.testing.assert_allclose(found.error, by_numpy(W, x), rtol=1e-6, atol=1e-20)
    assert found.solved.all()


@pytest.mark.parametrize(("k", "stride", "padding"), [(1, 1, 1), (3, 2, 0), (2, 3, 1), (4, 1, 1)])
def test_convolutional_is_numpys(k: int, stride: int, padding: int):
    dictionary = ConvDictionary(normal(k, 2, 3, 3), stride, padding)
    x = normal(5, 2, 7, 6, seed=1)
    W = maps(dictionary, x)
    shape = W.analyse(x[:1]).shape[1:]
    units = torch.eye(shape.numel(), dtype=DOUBLE).unflatten(1, shape)
    wanted = by_numpy(W.decode(units).flatten(1).T, x)
    found = regression_error(dictionary, x.float())
    assert found.solved.all()
    np.testing.assert_allclose(found.error, wanted, rtol=1e-5, atol=1e-20)
    assert (k == 4) == (wanted.max() < 1e-20)  # four filters span all of the images


def test_what_lies_in_the_span_or_across_it():
    W = normal(12, 4)
    inside = normal(3, 4, seed=1) @ W.T
    q = torch.linalg.qr(W, mode="complete").Q
    across = normal(3, 8, seed=2) @ q[:, 4:].T
    assert float(regression_error(W, inside).error.max()) < 1e-25
    torch.testing.assert_close(regression_error(W, across).error, torch.ones(3, dtype=DOUBLE))
    half = inside / inside.norm(dim=1, keepdim=True) + across / across.norm(dim=1, keepdim=True)
    torch.testing.assert_close(regression_error(W, half).error, torch.full((3,), 0.5, dtype=DOUBLE))


def test_too_few_steps_are_told_and_stay_above_the_least_error():
    dictionary, x = ConvDictionary(normal(2, 3, 3, 3), 1, 1), normal(4, 3, 9, 9, seed=1)
    best = regression_error(dictionary, x)
    assert best.solved.all()
    above = torch.inf
    for steps in (1, 3, 10, 30):
        found = regression_error(dictionary, x, steps=steps)
        assert (found.error >= best.error).all()
        assert (found.error < above).all()
        assert not found.solved.any()
        above = found.error


def test_targets_solved_early_wait_for_the_others():
    dictionary = ConvDictionary(normal(2, 3, 3, 3), 1, 1)
    x = normal(3, 3, 9, 9, seed=1)
    x[0] = maps(dictionary, x).decode(normal(1, 2, 9, 9, seed=2))[0]
    found = regression_error(dictionary, x)
    assert found.solved.all()
    assert found.error[0] < 1e-15
    assert (found.error[1:] > 0.01).all()


def test_what_is_refused():
    with pytest.raises(CallError, match="no relative error"):
        regression_error(normal(4, 3), torch.zeros(2, 4))
    with pytest.raises(CallError, match="n at least 1"):
        regression_error(normal(4, 3), normal(2, 5))
    with pytest.raises(CallError, match="steps=0"):
        regression_error(normal(4, 3), normal(2, 4), steps=0)
