"""The Square attack: what a query-only search of images must find, and what it cannot."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.attack.ball.square import (
    bump,
    grid_of_bumps,
    moved_bumps,
    pair_of_bumps,
    side_at,
    signed_square,
    square,
    stripes,
    windows,
)
from tacit.errors import CallError
from tacit.nets import Linear


def gen(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("norm", "dual"), [(2, 2), (math.inf, 1)])
def test_linear_models_break_soon_after_their_radius_and_never_before(norm, dual):
    u, x = (
        torch.randn(16, generator=gen(0)).double(),
        torch.randn(20, 16, generator=gen(1)).double(),
    )
    rule = Linear(u)

    def no_gradient(z):
        return rule(z.detach())

    y = rule(x).sign()
    exact = rule(x).abs() / torch.linalg.vector_norm(u, dual)
    radii = [0.2, 1.0]
    found = square(no_gradient, x, y, radii, image=(4, 4, 1), norm=norm, steps=150)
    may = exact.unsqueeze(0) <= torch.tensor(radii).unsqueeze(1) * (1 + 1e-9)
    must = exact.unsqueeze(0) * 1.5 <= torch.tensor(radii).unsqueeze(1)
    assert not (found.broken & ~may).any()
    assert must.any()
    assert found.broken[must].double().mean() > 0.95
    assert not found.flat.any()


def test_a_saturated_model_hides_its_gradient_and_not_its_scores():
    x = torch.full((8, 16), 0.5)
    u = torch.ones(16)

    def steps(z):  # a staircase: the gradient is 0 everywhere
        return torch.floor(10 * (z @ u)) / 10 - 6

    y = torch.ones(8)
    found = square(steps, x, y, [0.2], image=(4, 4, 1), norm=math.inf, box=(0.0, 1.0), steps=200)
    assert found.broken.all()
    assert (found.delta.abs() <= 0.2 + 1e-6).all()


def test_images_of_any_layout_with_channels_stay_in_ball_and_box():
    x = torch.rand(6, 5, 4, 3, generator=gen(3))
    u = torch.randn(60, generator=gen(4))

    def model(z):
        return z.flatten(1) @ u

    y = model(x).sign()
    for norm in (2, math.inf):
        found = square(
            model, x, y, [0.05, 2.0], image=(5, 4, 3), norm=norm, box=(0.0, 1.0), steps=20
        )
        size = torch.linalg.vector_norm(found.delta.flatten(2), norm, dim=2)
        assert (size <= found.radii.unsqueeze(1) * (1 + 1e-5)).all()
        assert ((x + found.delta >= -1e-6) & (x + found.delta <= 1 + 1e-6)).all()
        assert found.lowered[1].all()
        again = square(
            model, x, y, [0.05, 2.0], image=(5, 4, 3), norm=norm, box=(0.0, 1.0), steps=20
        )
        assert torch.equal(found.delta, again.delta)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 3), st.data())
def test_a_window_is_one_square_of_the_image_with_all_its_channels(height, width, channels, data):
    side = data.draw(st.integers(1, min(height, width)))
    like = torch.zeros(5, height * width * channels)
    for at in windows(like, (height, width, channels), side, gen(0)):
        mask = torch.zeros(height * width * channels)
        mask[at.flatten()] = 1
        mask = mask.view(height, width, channels)
        rows, columns = mask.any(2).any(1).nonzero(), mask.any(2).any(0).nonzero()
        assert rows.max() - rows.min() + 1 == columns.max() - columns.min() + 1 == side
        assert mask.sum() == side**2 * channels


def test_squares_shrink_by_the_schedule():
    image = (28, 28, 1)
    assert side_at(0.0, math.inf, image) == 25  # sqrt(.8 * 784)
    assert side_at(0.5, math.inf, image) == 3  # halved six times: sqrt(9.8)
    assert side_at(0.99, math.inf, (8, 8, 1)) == 1
    assert side_at(0.99, 2.0, image) == 3
    sides = [side_at(k / 100, math.inf, image) for k in range(100)]
    assert sides == sorted(sides, reverse=True)


@pytest.mark.parametrize("shape", [(5, 5), (4, 7), (1, 3), (6, 6)])
def test_a_bump_is_the_sum_of_nested_rectangles(shape):
    height, width = shape
    built = torch.zeros(shape, dtype=torch.float64)
    for i in range(max(shape)):
        rectangle = torch.zeros(shape, dtype=torch.float64)
        rows = range(max(height // 2 - i, 0), min(height // 2 + i + 1, height))
        columns = range(max(width // 2 - i, 0), min(width // 2 + i + 1, width))
        for r in rows:
            for c in columns:
                rectangle[r, c] = 1
        if bool((built > 0).all()):
            break
        built += rectangle / (i + 1) ** 2
    torch.testing.assert_close(bump(*shape), built / built.norm())


def test_a_pair_of_bumps_has_one_sign_a_half():
    pair = pair_of_bumps(7)
    assert (pair[:3] > 0).all()
    assert (pair[3:] < 0).all()
    assert float(pair.norm()) == pytest.approx(1)


def test_starts_are_stripes_and_a_grid_of_bumps():
    like, image = torch.zeros(4, 10 * 11 * 2), (10, 11, 2)
    lines = stripes(like, image, gen(0)).view(4, 10, 11, 2)
    assert (lines.abs() == 1).all()
    assert (lines == lines[:, :1]).all()
    assert (lines[:, 0] != lines[:1, 0]).any()
    grid = grid_of_bumps(like, image, gen(0)).view(4, 10, 11, 2)
    assert (grid[:, :, 10] == 0).all()  # 5 tiles of 2 pixels leave a column
    tile = bump(2, 2).float()
    for row in range(0, 10, 2):
        for column in range(0, 10, 2):
            here = grid[:, row : row + 2, column : column + 2]
            torch.testing.assert_close(here.abs(), tile.view(1, 2, 2, 1).expand(4, 2, 2, 2))
            assert (here.sign() == here[:, :1, :1].sign()).all()


def test_a_change_in_linf_is_one_square_at_the_radius():
    delta = torch.zeros(50, 6 * 6 * 2).double()
    moved = signed_square(delta, torch.full((50, 1), 0.5).double(), (6, 6, 2), 2, gen(0)).view(
        50, 36, 2
    )
    assert ((moved != 0).sum(1) == 4).all()
    assert moved.abs().max() == 0.5
    assert (moved.sum(1).abs() - 4 * 0.5).abs().max() < 1e-12  # one sign a channel
    assert 0.2 < (moved.sum(1)[:, 0] > 0).double().mean() < 0.8


def test_a_change_in_l2_uses_the_whole_ball_and_two_squares():
    delta = torch.randn(40, 9 * 9, generator=gen(5)).double()
    delta *= 0.9 * 2 / delta.norm(dim=1, keepdim=True)
    moved = moved_bumps(delta, torch.full((40, 1), 2.0).double(), (9, 9, 1), 3, gen(0))
    torch.testing.assert_close(moved.norm(dim=1), torch.full((40,), 2.0).double())
    changed = (moved != delta).sum(1)
    assert changed.max() <= 18
    assert changed.min() >= 9
    emptied = (moved == 0).sum(1)
    assert emptied.max() == 9  # the source, where the squares do not meet


def test_wrong_calls_are_refused_in_one_line():
    x, y = torch.ones(1, 4), torch.ones(1)
    rule = Linear(torch.ones(4))
    with pytest.raises(CallError, match="for 2 and inf"):
        square(rule, x, y, [0.1], image=(2, 2, 1), norm=1)
    with pytest.raises(CallError, match="the 4 coordinates"):
        square(rule, x, y, [0.1], image=(3, 2, 1))
    with pytest.raises(CallError, match="steps=0"):
        square(rule, x, y, [0.1], image=(2, 2, 1), steps=0)
