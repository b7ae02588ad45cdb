import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import CallError
from tacit.measure import alignment_field


@given(seed=st.integers(0, 999), p=st.sampled_from([1.5, 2.0, 3.0]))
def test_the_field_is_the_gradient_that_turns_a_small_neuron(seed, p):
    """Up to a part along w, x^(p)(w) is the gradient on the sphere of G(u) = sum y relu(<x, u>)^p."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(6, 4, generator=g, dtype=torch.float64)
    x = x / x.norm(dim=1, keepdim=True)
    y = torch.where(torch.rand(6, generator=g) < 0.5, 1.0, -1.0).double()
    u = torch.randn(1, 4, generator=g, dtype=torch.float64)
    u = (u / u.norm()).requires_grad_()
    (y * torch.relu(u @ x.T) ** p).sum().backward()
    field = alignment_field(u.detach(), x, y, p)
    away = torch.eye(4, dtype=torch.float64) - u.detach().T @ u.detach()
    assert torch.allclose(field @ away, u.grad @ away, atol=1e-9)


@given(scale=st.floats(0.01, 100))
def test_only_the_direction_of_w_counts(scale):
    x, y = torch.eye(3).double(), torch.tensor([1.0, 1.0, -1.0]).double()
    w = torch.tensor([[0.3, 0.5, 0.2]]).double()
    assert torch.allclose(alignment_field(scale * w, x, y, 3), alignment_field(w, x, y, 3))


def test_p_below_one_is_refused():
    one = torch.ones(1, 1, dtype=torch.float64)
    with pytest.raises(CallError, match="p=0"):
        alignment_field(one, one, one[0], 0)
