import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.attack import first_crossing
from tacit.nets import Linear


@given(t=st.floats(0.01, 0.99))
def test_the_crossing_of_a_plane_is_exact(t):
    x = torch.zeros(1, 3, dtype=torch.float64)
    rule = Linear(torch.tensor([-1.0, 0, 0]).double(), 2 * t)
    ray = torch.tensor([[2.0, 0, 0]]).double()
    found = first_crossing(rule, x, torch.ones(1).double(), ray).item()
    assert abs(found - 2 * t) < 1e-12
    # what is returned breaks the point
    assert rule(x + found * ray / 2) <= 1e-15


def test_nothing_to_cross_is_inf_and_broken_is_zero():
    rule = Linear(torch.tensor([1.0]).double(), 0.0)
    x = torch.tensor([[1.0], [-1.0], [0.0]]).double()
    found = first_crossing(rule, x, torch.ones(3).double(), torch.ones(3, 1).double())
    assert found.tolist() == [torch.inf, 0.0, 0.0]


def test_a_tie_breaks_unless_told_otherwise():
    # f = relu(1 - t) - relu(t - 2) along the ray: silent from 1 to 2, negative beyond
    def net(x):
        return torch.relu(1 - x[:, 0]) - torch.relu(x[:, 0] - 2)

    x, y, ray = torch.zeros(1, 1).double(), torch.ones(1).double(), torch.full((1, 1), 4.0).double()
    assert abs(first_crossing(net, x, y, ray).item() - 1) < 1e-9
    assert abs(first_crossing(net, x, y, ray, ties_break=False).item() - 2) < 1e-9


def test_reach_extends_the_ray():
    rule = Linear(torch.tensor([-1.0]).double(), 3.0)
    x, y, ray = torch.zeros(1, 1).double(), torch.ones(1).double(), torch.ones(1, 1).double()
    assert first_crossing(rule, x, y, ray).item() == torch.inf
    assert abs(first_crossing(rule, x, y, ray, reach=4.0).item() - 3) < 1e-12
