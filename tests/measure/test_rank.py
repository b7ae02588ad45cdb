"""The stable rank against singular values."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import CallError
from tacit.measure import rank
from tacit.measure.rank import stable_rank


@given(
    seed=st.integers(0, 999),
    n=st.integers(1, 9),
    d=st.integers(1, 9),
    scale=st.sampled_from([1.0, 1e-200, 1e150]),
)
def test_it_is_that_of_the_singular_values(seed, n, d, scale):
    g = torch.Generator().manual_seed(seed)
    A = torch.randn(n, d, generator=g, dtype=torch.float64)
    s = torch.linalg.svdvals(A)
    assert float(stable_rank(A * scale)) == pytest.approx(float(s.square().sum() / s[0] ** 2))


def test_blocks_and_ensembles_change_nothing(monkeypatch):
    g = torch.Generator().manual_seed(1)
    A = torch.randn(2, 40, 5, generator=g)
    whole = stable_rank(A)
    monkeypatch.setattr(rank, "BLOCK", 7)
    torch.testing.assert_close(stable_rank(A), whole)
    s = torch.linalg.svdvals(A.double())
    torch.testing.assert_close(whole, s.square().sum(1) / s[:, 0] ** 2)


def test_known_ranks():
    assert float(stable_rank(torch.eye(4))) == pytest.approx(4)
    assert float(stable_rank(torch.ones(50, 3))) == pytest.approx(1)


@pytest.mark.parametrize(
    "bad", [torch.zeros(2, 3), torch.zeros(0, 3), torch.full((2, 2), torch.nan)]
)
def test_what_has_no_stable_rank_is_refused(bad):
    with pytest.raises(CallError, match="no stable rank"):
        stable_rank(bad)
