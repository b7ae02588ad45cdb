import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.features import prepare, unit_rows
from tacit.data.images import Features
from tacit.errors import CallError


def features(x):
    x = torch.as_tensor(x, dtype=torch.float32)
    return Features(x, torch.zeros(len(x), dtype=torch.int64), ("a", "b"))


def draw(n, d, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32) + np.float32(shift)


@given(
    n=st.integers(2, 30),
    m=st.integers(1, 9),
    d=st.integers(1, 6),
    shift=st.floats(-50, 50),
    seed=st.integers(0, 99),
)
def test_rows_are_centred_by_the_training_mean_and_have_length_1(n, m, d, shift, seed):
    a, b = draw(n, d, seed, shift), draw(m, d, seed + 100, shift)
    done = prepare(features(a), features(b))
    mean = a.astype(np.float64).mean(0)
    for rows, out in ((a, done.train), (b, done.test)):
        residue = rows - mean
        assert np.allclose(out, residue / np.linalg.norm(residue, axis=1)[:, None], atol=1e-6)
        assert torch.allclose(out.norm(dim=1), torch.ones(len(rows)), atol=1e-6)
    assert done.train.dtype == torch.float32
    assert np.allclose(done.centre, mean, rtol=1e-6, atol=1e-6)


def test_a_common_shift_and_scale_change_nothing():
    x = draw(20, 5)
    a, b = prepare(features(x)), prepare(features(4 * x + 2))
    assert a.test is None
    assert torch.allclose(a.train, b.train, atol=1e-6)


def test_large_sets_are_done_in_blocks_and_rows_keep_their_numbers():
    x = draw(5000, 2)
    x[4500] = np.nan
    good = np.delete(x, 4500, 0)
    out = prepare(features(good)).train
    residue = good - good.astype(np.float64).mean(0)
    assert np.allclose(out, residue / np.linalg.norm(residue, axis=1)[:, None], atol=1e-6)
    with pytest.raises(CallError, match="row 4500 of the features holds NaN"):
        unit_rows(torch.tensor(x), torch.zeros(2, dtype=torch.float64))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_a_row_equal_to_the_mean_has_no_direction_and_is_named(scale):
    x = scale * np.array([[1.1, 0.3], [3.1, 0.3], [2.1, 0.3]])
    with pytest.raises(CallError, match="row 2 of the training features equals the mean"):
        prepare(features(x))
    with pytest.raises(CallError, match="row 0 of the test features equals the mean"):
        prepare(features(x[:2]), features(x[2:]))
    near = scale * np.array([[2.1 + 1e-4, 0.3]])  # near is not equal
    assert prepare(features(x[:2]), features(near)).test.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("x", [np.full((4, 3), 0.1), np.zeros((3, 2)), np.ones((1, 5))])
def test_constant_features_are_refused(x):
    with pytest.raises(CallError, match=f"constant .all {len(x)} rows are equal"):
        prepare(features(x))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_refused(value):
    x = draw(4, 3)
    bad = x.copy()
    bad[1, 2] = value
    with pytest.raises(CallError, match="NaN or inf"):
        prepare(features(bad))
    with pytest.raises(CallError, match="row 1 of the test features holds NaN or inf"):
        prepare(features(x), features(bad))


def test_sets_of_two_extractors_and_empty_sets_are_refused():
    with pytest.raises(CallError, match="3 columns and the test features 4"):
        prepare(features(draw(5, 3)), features(draw(5, 4)))
    with pytest.raises(CallError, match="no training features"):
        prepare(features(np.zeros((0, 3))))
    assert prepare(features(draw(5, 3)), features(np.zeros((0, 3)))).test.shape == (0, 3)
