import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.measure.distance.cells import cell_bound
from tacit.measure.distance.pieces import Pieces, merge_pieces
from tacit.measure.distance.search import ascend
from tacit.measure.distance.upper import _circle, pair_bound, upper_bound, zonotope_points

SEEDS = st.integers(0, 999)
POWERS = st.sampled_from([1.0, 1.3, 1.7, 2.0, 2.5, 3.0, 4.0])


def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


def pieces_of(seed, D, m, p, noise=0.3):
    g = torch.Generator().manual_seed(seed)
    u, v, d = (torch.randn(*s, generator=g, dtype=torch.float64) for s in ((m, D), (m,), (m, D)))
    zero = torch.zeros_like(v)
    return Pieces(
        unit(torch.cat([u + noise * d, u])), torch.cat([v, zero]), torch.cat([zero, v]), p
    )


def sup_found(pieces, c, seed):
    """The best of 24 searches of either sign."""
    start = unit(
        torch.randn(
            24,
            pieces.u.shape[1],
            generator=torch.Generator().manual_seed(seed),
            dtype=torch.float64,
        )
    )
    sign = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(12)
    f, F = pieces.values(ascend(pieces, pieces.weights(c), start, sign, 250))
    return float((c * f - F).abs().max())


@settings(max_examples=12)
@given(seed=SEEDS, p=POWERS, c=st.floats(0.3, 2), D=st.integers(2, 7))
def test_no_point_that_is_found_lies_above_the_bounds(seed, p, c, D):
    pieces = pieces_of(seed, D, 4, p)
    found = sup_found(pieces, c, seed)
    assert found <= pair_bound(pieces, c) * (1 + 1e-12)
    assert found <= upper_bound(pieces, c) * (1 + 1e-12)


@settings(max_examples=12)
@given(seed=SEEDS, p=st.floats(2, 6), c=st.floats(0.3, 2), D=st.integers(1, 3))
def test_branch_and_bound_meets_the_search_in_few_dimensions(seed, p, c, D):
    pieces = pieces_of(seed, D, 3, p)
    bound = cell_bound(pieces, c)
    found = sup_found(pieces, c, seed)
    assert found <= bound <= found * (1 + 2e-6) + 1e-12


def test_branch_and_bound_is_not_tried_where_it_cannot_work():
    assert cell_bound(pieces_of(0, 4, 3, 3.0), 1.0) is None
    assert cell_bound(pieces_of(0, 2, 3, 1.5), 1.0) is None


@given(seed=SEEDS, c=st.floats(0.3, 2), D=st.integers(1, 6))
def test_zonotopes_give_the_supremum_of_a_relu_net_and_where_it_is(seed, c, D):
    pieces = pieces_of(seed, D, 4, 1.0)
    x = zonotope_points(pieces, c)
    f, F = pieces.values(x)
    reached = float((c * f - F).abs().max())
    bound = upper_bound(pieces, c)
    assert reached == pytest.approx(bound, rel=1e-7)
    g = torch.Generator().manual_seed(seed)
    f, F = pieces.values(unit(torch.randn(20_000, D, generator=g, dtype=torch.float64)))
    assert float((c * f - F).abs().max()) <= bound * (1 + 1e-12)


@given(a=st.floats(0.01, 3), b=st.floats(0.01, 3), theta=st.floats(0, math.pi / 2 - 0.01), p=POWERS)
def test_the_circle_is_bounded_between_its_grid_points(a, b, theta, p):
    tensor = [torch.tensor([value], dtype=torch.float64) for value in (a, b, theta)]
    phi = torch.linspace(-math.pi, math.pi, 300_001, dtype=torch.float64)
    gap = a * phi.cos().clamp_min(0) ** p - b * (phi - theta).cos().clamp_min(0) ** p
    for bound, brute in zip(
        _circle(*tensor, p), (float(gap.max()), float(-gap.min())), strict=True
    ):
        assert brute <= float(bound) * (1 + 1e-12) + 1e-15
        assert float(bound) <= brute + 1e-3


@given(seed=SEEDS, p=POWERS, spread=st.floats(1e-4, 0.2), coarse=st.booleans())
def test_merging_changes_a_net_by_no_more_than_is_said(seed, p, spread, coarse):
    g = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    centre = unit(draw(2, 5))
    u = unit(centre.repeat(6, 1) + spread * draw(12, 5) / math.sqrt(5))
    v = draw(12)
    full = Pieces(torch.cat([u, centre]), torch.cat([v, v.new_zeros(2)]),
                  torch.cat([v.new_zeros(12), v.new_ones(2)]), p)  # fmt: skip
    merged, error = merge_pieces(full, coarse=coarse)
    x = unit(
        torch.cat(
            [draw(3000, 5), centre.repeat(300, 1) + spread * draw(600, 5), u - centre.repeat(6, 1)]
        )
    )
    change = full.values(x)[0] - merged.values(x)[0]
    assert float(change.abs().max()) <= error * (1 + 1e-9) + 1e-12
    # products of other shapes: the same numbers, not the same bits
    assert torch.allclose(full.values(x)[1], merged.values(x)[1], rtol=0, atol=1e-12)
    if coarse:
        assert len(merged.u) < len(full.u)


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_the_bound_of_pairs_on_orthogonal_planes_is_the_supremum(p):
    """Turned neurons of one angle, each into a direction of its own: one plane's maximum is all."""
    eye = torch.eye(8, dtype=torch.float64)
    theta = 0.2
    u = torch.cat([math.cos(theta) * eye[:4] + math.sin(theta) * eye[4:], eye[:4]])
    sign = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
    pieces = Pieces(u, torch.cat([sign, 0 * sign]), torch.cat([0 * sign, sign]), p)
    phi = torch.linspace(-2, 2, 400_001, dtype=torch.float64)
    brute = float((phi.cos().clamp_min(0) ** p - (phi - theta).cos().clamp_min(0) ** p).abs().max())
    assert pair_bound(pieces, 1.0) == pytest.approx(brute, rel=1e-4)
    assert pair_bound(pieces, 1.0) >= brute
