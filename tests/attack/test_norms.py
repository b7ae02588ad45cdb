"""The hooks of each norm against closed forms, another solver, and the invariants of projections."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog, minimize

from tacit.attack.norms import (
    L1,
    L2,
    LINF,
    NORMS,
    known_norm,
    l1_threshold,
    l1_threshold_sorted,
)
from tacit.errors import CallError

ALL = [L1, L2, LINF]
BY_NAME = pytest.mark.parametrize("norm", ALL, ids=lambda norm: norm.name)
D = 4

coordinates = st.floats(-3, 3, allow_subnormal=False)
points = arrays(np.float64, (3, D), elements=coordinates)
radii = st.sampled_from([0.0, 1e-3, 0.3, 1.0, 5.0])


def room_from(rng, n, D, boxed):
    if not boxed:
        return None
    ends = torch.tensor(rng.uniform(0, 1, (2, n, D)) * (rng.uniform(size=(2, n, D)) < 0.8))
    return -ends[0], ends[1]


def column(radius, n=3):
    return torch.full((n, 1), radius, dtype=torch.float64)


@BY_NAME
@pytest.mark.parametrize("boxed", [False, True])
@given(z=points, radius=radii, seed=st.integers(0, 99))
def test_a_projection_is_inside_and_idempotent_and_leaves_what_is_inside(
    norm, boxed, z, radius, seed
):
    z, radius = torch.tensor(z), column(radius)
    room = room_from(np.random.default_rng(seed), 3, D, boxed)
    inside = norm.project(z, radius, room)
    assert (norm.size(inside) <= radius[:, 0] * (1 + 1e-12)).all()
    if room is not None:
        assert (inside >= room[0]).all()
        assert (inside <= room[1]).all()
    assert torch.allclose(norm.project(inside, radius, room), inside, rtol=0, atol=1e-12)
    # scaling everything scales the projection
    wider = None if room is None else (3 * room[0], 3 * room[1])
    assert torch.allclose(norm.project(3 * z, 3 * radius, wider), 3 * inside, rtol=0, atol=1e-11)


@BY_NAME
@pytest.mark.parametrize("boxed", [False, True])
@given(z=points, radius=st.sampled_from([0.1, 0.7, 2.0]), seed=st.integers(0, 99))
def test_a_projection_is_the_nearest_point(norm, boxed, z, radius, seed):
    # z - P(z) makes no acute angle with the way to any other point: the variational inequality,
    # whose worst case is the extreme point
    z, radius = torch.tensor(z), column(radius)
    room = room_from(np.random.default_rng(seed), 3, D, boxed)
    inside = norm.project(z, radius, room)
    other = norm.extreme(z - inside, radius, room)
    assert (((z - inside) * (other - inside)).sum(1) <= 1e-9).all()


@BY_NAME
@pytest.mark.parametrize("boxed", [False, True])
def test_a_projection_agrees_with_slsqp(norm, boxed):
    rng = np.random.default_rng(5)
    compared = 0
    for _ in range(8):
        z, radius = rng.normal(size=D) * 2, rng.choice([0.3, 1.0, 2.0])
        room = room_from(rng, 1, D, boxed)
        ends = (
            [(-9, 9)] * D
            if room is None
            else list(zip(*(t[0].tolist() for t in room), strict=True))
        )
        # delta = a - b with a, b >= 0 makes every ball smooth
        bounds = [(0, max(high, 0)) for _, high in ends] + [(0, max(-low, 0)) for low, _ in ends]
        size = {
            1: lambda s, radius=radius: radius - s.sum(),
            2: lambda s, radius=radius: radius**2 - ((s[:D] - s[D:]) ** 2).sum(),
            math.inf: lambda s, radius=radius: radius - np.abs(s[:D] - s[D:]),
        }[norm.order]
        found = minimize(
            lambda s, z=z: ((s[:D] - s[D:] - z) ** 2).sum(),
            np.zeros(2 * D),
            bounds=bounds,
            constraints={"type": "ineq", "fun": size},
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-14},
        )
        mine = norm.project(torch.tensor(z)[None], column(radius, 1), room)[0].numpy()
        theirs = found.x[:D] - found.x[D:]
        # where SLSQP gives up (which cases differs from CPU to CPU) its point is another, and may be outside
        compared += found.success
        assert not found.success or np.abs(mine - theirs).max() < 1e-4
        theirs = theirs * min(1.0, radius / np.linalg.norm(theirs, norm.order))
        assert ((mine - z) ** 2).sum() <= ((theirs - z) ** 2).sum() + 1e-9
    assert compared >= 3


@BY_NAME
@pytest.mark.parametrize("boxed", [False, True])
@given(g=points, radius=st.sampled_from([0.1, 0.7, 2.0]), seed=st.integers(0, 99))
def test_the_extreme_point_is_inside_and_beats_every_other(norm, boxed, g, radius, seed):
    rng = np.random.default_rng(seed)
    g, radius, room = torch.tensor(g), column(radius), room_from(rng, 3, D, boxed)
    top = norm.extreme(g, radius, room)
    assert (norm.size(top) <= radius[:, 0] * (1 + 1e-12)).all()
    if room is None:
        best = radius[:, 0] * norm.dual(g)
        assert torch.allclose((g * top).sum(1), best, rtol=1e-12, atol=1e-12)
    else:
        assert ((top >= room[0]) & (top <= room[1])).all()
    for _ in range(20):
        other = norm.project(torch.tensor(rng.normal(size=(3, D)) * 3), radius, room)
        assert ((g * other).sum(1) <= (g * top).sum(1) + 1e-12).all()


def test_the_extreme_point_of_l1_and_box_is_the_linear_program():
    rng = np.random.default_rng(3)
    for _ in range(20):
        g, radius = rng.normal(size=D), rng.uniform(0.1, 2)
        low, high = room_from(rng, 1, D, True)
        bounds = [(0, h) for h in high[0].tolist()] + [(0, -a) for a in low[0].tolist()]
        found = linprog(
            np.concatenate([-g, g]), A_ub=np.ones((1, 2 * D)), b_ub=[radius], bounds=bounds
        )
        top = L1.extreme(torch.tensor(g)[None], column(radius, 1), (low, high))[0].numpy()
        assert g @ top == pytest.approx(-found.fun, abs=1e-9)


def test_one_dimension_with_l1_and_a_box():
    z = torch.tensor([[2.0], [-2.0], [0.1]], dtype=torch.float64)
    room = (column(-0.3), column(0.5))
    assert L1.project(z, column(1.0), room).flatten().tolist() == pytest.approx([0.5, -0.3, 0.1])
    assert L1.project(z, column(0.2), room).flatten().tolist() == pytest.approx([0.2, -0.2, 0.1])


@BY_NAME
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_of_any_size_are_met(norm, dtype):
    largest = torch.finfo(dtype).max
    g = torch.tensor([[largest, largest, 0.0], [1e-37, 0, -1e-37], [0.0, 0, 0]], dtype=dtype)
    radius = torch.full((3, 1), 0.5, dtype=dtype)
    room = (torch.full((3, 3), -0.2, dtype=dtype), torch.full((3, 3), 0.4, dtype=dtype))
    for space in (None, room):
        for move in (norm.extreme(g, radius, space), norm.steepest(g) / 2):
            assert torch.isfinite(move).all()
            assert (norm.size(move) <= 0.5 * (1 + 1e-6)).all()
            assert (norm.size(move)[:2] > 0.15).all()
            assert (move[2] == 0).all()


@BY_NAME
def test_a_radius_of_zero_leaves_nothing(norm):
    z = torch.tensor([[1.0, -2.0], [0.0, 0.0]])
    nothing = torch.zeros(2, 1)
    for room in (None, (torch.full_like(z, -1), torch.full_like(z, 1))):
        assert (norm.project(z, nothing, room) == 0).all()
        assert (norm.extreme(z, nothing, room) == 0).all()


@BY_NAME
def test_random_points_fill_the_unit_ball(norm):
    like = torch.zeros(4000, 3, dtype=torch.float64)
    draws = norm.random(like, torch.Generator().manual_seed(8))
    size = norm.size(draws)
    assert size.max() <= 1
    # uniform in a ball of dimension 3: P(size <= t) = t^3; 3 standard errors are .024
    assert ((size <= 0.5).double().mean() - 0.125).abs() < 0.024
    assert draws.mean(0).abs().max() < 0.05


def test_names():
    assert known_norm("inf") is known_norm(math.inf) is known_norm(LINF) is NORMS["inf"]
    assert known_norm(1) is L1
    assert known_norm(2.0) is L2
    with pytest.raises(CallError, match=r"norm 3: choose 1, 2, inf"):
        known_norm(3)


def wide(seed, n=60, D=200, scale=1.0, dtype=torch.float64):
    """Rows of many shapes: images with pixels at both ends of the box, and z from inside it to far beyond."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, D)) * (rng.uniform(size=(n, D)) < 0.5)
    x[rng.uniform(size=(n, D)) < 0.1] = 1.0
    z = rng.standard_t(2, size=(n, D)) * 10.0 ** rng.uniform(-3, 3, size=(n, 1))
    z[:, :50] *= rng.uniform(size=(n, 50)) < 0.3
    radius = 10.0 ** rng.uniform(-2, 1.5, size=(n, 1))
    x, z, radius = (torch.tensor(t, dtype=dtype) for t in (x, z, radius))
    return scale * z, scale * radius, (scale * -x, scale * (1 - x))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_the_l1_threshold_without_sorting_is_that_of_sorting(seed, scale):
    z, radius, room = wide(seed, scale=scale)
    for space in (room, None):
        a = z.abs()
        cap = a if space is None else z.clamp(*space).abs()
        total = cap.sum(1, keepdim=True)
        quick, sure = l1_threshold(a, cap, total, radius), l1_threshold_sorted(a, cap, radius)
        known = ~quick.isnan()
        assert known.double().mean() > 0.9  # the others are left to sorting
        points = [torch.minimum((a - lam).clamp_min(0), cap)[known[:, 0]] for lam in (quick, sure)]
        assert torch.allclose(*points, rtol=0, atol=1e-11 * scale * 1000)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_the_l2_projection_is_that_of_bisection(seed, scale):
    z, radius, room = wide(seed, scale=scale)
    low, high = torch.zeros_like(radius), torch.ones_like(radius)
    for _ in range(200):
        t = (low + high) / 2
        small = (t * z).clamp(*room).norm(dim=1, keepdim=True) <= radius
        low, high = torch.where(small, t, low), torch.where(small, high, t)
    assert torch.allclose(
        L2.project(z, radius, room), (high * z).clamp(*room), rtol=0, atol=1e-11 * scale
    )


@pytest.mark.parametrize("norm", [L1, L2], ids=lambda norm: norm.name)
def test_projections_in_single_precision_are_those_in_double(norm):
    z, radius, room = wide(7)
    single = norm.project(z.float(), radius.float(), (room[0].float(), room[1].float()))
    exact = norm.project(z, radius, room)
    assert (norm.size(single) <= radius.float()[:, 0] * (1 + 2e-6)).all()
    assert ((single >= room[0].float()) & (single <= room[1].float())).all()
    # a threshold among numbers of size |z| is known to their last digits
    loss = 1e-6 * (radius + z.abs().amax(1, keepdim=True))
    assert ((single.double() - exact).abs() <= loss).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("norm", [L2, LINF], ids=lambda norm: norm.name)
def test_projections_of_numbers_whose_squares_are_none(norm, dtype):
    huge = torch.finfo(dtype).max / 4
    z = torch.tensor([[huge, -huge, 0.0], [huge, 0.1, 0.0], [0.0, 0.0, 0.0]], dtype=dtype)
    radius = torch.full((3, 1), 0.5, dtype=dtype)
    room = (torch.full((3, 3), -0.4, dtype=dtype), torch.full((3, 3), 0.4, dtype=dtype))
    inside = norm.project(z, radius, room)
    assert torch.isfinite(inside).all()
    assert (norm.size(inside) <= 0.5 * (1 + 1e-6)).all()
    assert (norm.size(inside)[:2] > 0.39).all()
