"""What a second pair of eyes tried on the flow: crossed signs, edges of the record, awkward scouts."""

import math

import pytest
import torch
from torch import Tensor

from tacit.errors import CallError
from tacit.nets import TwoLayerNet
from tacit.train import FlowWarning, Until, descend, gradient_flow
from tacit.train.flow.checks import opposed
from tacit.train.flow.field import Points
from tacit.train.flow.lineage import after_merge, unmerged
from tacit.train.flow.merge import Grouping, grouped, merged
from tacit.train.flow.neurons import BALANCED, WIDE, Neurons

F64 = torch.float64


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def axes_data(n: int, classes: Tensor) -> tuple[Tensor, Tensor]:
    """n points on the axes in turn, axis k with the label classes[k]."""
    axis = torch.arange(n) % len(classes)
    return torch.eye(len(classes), dtype=F64)[axis], classes[axis]


def small(h: int, d: int, p: float, scale: float = 1e-6, seed: int = 1) -> TwoLayerNet:
    return TwoLayerNet(scale * drawn(h, d, seed=seed), scale * drawn(h, seed=seed + 50), p=p)


def test_a_second_layer_that_crosses_zero_follows_descent() -> None:
    x, y = drawn(10, 3), torch.sign(drawn(10, seed=1))
    w = 0.4 * drawn(6, 3, seed=2)
    net = TwoLayerNet(w, -0.05 * drawn(6, seed=3).sign() * w.norm(dim=1), p=2.0)
    end = descend(net, x, y, step=2e-3, steps=1000).net
    flowed = gradient_flow(net, x, y, until=Until(time=2.0), tolerance=1e-3, merge_angle=0).net
    assert bool((end.v.sign() != net.v.sign()).any())
    assert float((flowed.v - end.v).norm() / end.v.norm()) < 5e-3
    assert float((flowed.w - end.w).norm() / end.w.norm()) < 5e-3


def test_weights_pass_through_zero_where_there_is_one_dimension() -> None:
    # L falls through w = 0 with the same slope on both sides: 0 is no place to rest
    x, y = torch.tensor([[1.0], [-1.0]], dtype=F64), torch.tensor([1.0, -1.0], dtype=F64)
    net = TwoLayerNet(torch.tensor([[0.5]], dtype=F64), torch.tensor([-1.0], dtype=F64))
    end = descend(net, x, y, step=1e-2, steps=300).net
    flowed = gradient_flow(net, x, y, until=Until(time=3.0), tolerance=1e-2).net
    assert torch.allclose(flowed.w, end.w, atol=2e-2)


def test_merging_keeps_the_function_off_the_data_too() -> None:
    x, y = drawn(4, 5) + 2, torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=F64)
    net = TwoLayerNet(0.3 * drawn(40, 5, seed=1), 0.3 * drawn(40, seed=2), p=3.0)
    elsewhere = drawn(200, 5, seed=3)
    full, fewer = (
        gradient_flow(net, x, y, until=Until(time=0.05), merge_angle=a).net for a in (0.0, 0.03)
    )
    f, g = full(elsewhere), fewer(elsewhere)
    assert float((f - g).abs().max() / f.abs().max()) < 1e-2


def test_a_direction_has_not_converged_before_the_points_are_fitted() -> None:
    # one class is learned first: theta and -grad L are parallel there, at the saddle
    x, y = torch.eye(2, dtype=F64), torch.tensor([1.0, -1.0], dtype=F64)
    c = torch.tensor([0.7, 0.3], dtype=F64)
    flowed = gradient_flow(
        small(40, 2, 3.0), x, y, until=Until(residual=0.05), sample_weight=c, loss="exp"
    )
    assert flowed.ended[0].margin > 0.5


def test_the_record_ends_where_the_flow_ends_and_has_no_moment_twice() -> None:
    x, y = drawn(12, 4), torch.sign(drawn(12, seed=1))
    for frames in (1, 2, 5, 10):
        flowed = gradient_flow(small(8, 4, 3.0, 0.1), x, y, until=Until(time=30.0), record=frames)
        times = flowed.history[0].log_time
        assert float(times[-1]) == flowed.ended[0].log_time
        assert bool((times.diff() > 0).all())
        assert len(times) <= 2 * frames + 1


def test_the_group_of_a_neuron_is_its_row_in_the_net() -> None:
    # member 0: two that meet and two unripe ones; member 1: five apart; the rest is padding
    u = torch.eye(10, dtype=F64).expand(2, 10, 10).clone()
    u[0, 1] = u[0, 0]
    kind = torch.full((2, 10), BALANCED)
    kind[0, 2:4] = WIDE
    one = torch.ones(2, 10, dtype=F64)
    sign = one.clone()
    sign[0, 4:], sign[1, 5:] = 0, 0
    neurons = Neurons(u, one, 0 * one, sign, kind)
    grouping = grouped(neurons, sign > 0, torch.zeros(2, dtype=torch.bool), 0.03)
    assert grouping is not None
    fewer = merged(neurons, grouping)
    for i in range(2):
        rows = fewer.net(i, 3.0).w.shape[0]
        assert int(grouping.group[i].max()) < rows


def test_a_share_too_small_for_a_double_stays_small() -> None:
    q = torch.tensor([[0.0, -400.0]], dtype=F64)
    u = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]], dtype=F64)
    neurons = Neurons(u, q, 0 * q, torch.ones_like(q), torch.zeros(1, 2, dtype=torch.int64))
    together = Grouping(torch.zeros(1, 2, dtype=torch.int64), 1)
    none = u.new_zeros(0, 2)
    book = after_merge(unmerged(neurons, none), neurons, together, none)
    mass = book.all_neurons(merged(neurons, together), none)[0]
    assert torch.allclose(mass, torch.tensor([[0.0, -800.0]], dtype=F64), atol=1e-9)


@pytest.mark.parametrize("length", [0.1, 10.0])
def test_scouts_whatever_the_length_of_the_points(length: float) -> None:
    x, y = axes_data(120, torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=F64))
    x = length * (x + 0.05 * drawn(120, 4))
    net = small(60, 4, 3.0)
    full, quick = (
        gradient_flow(net, x, y, until=Until(log_loss=-3.0), scout=s).net for s in (0, 20)
    )
    f, g = full(x), quick(x)
    assert float((f - g).abs().max() / f.abs().max()) < 0.1  # .05 to .07 at length 1


def test_scouting_leaves_a_fixed_second_layer_fixed() -> None:
    x, y = axes_data(40, torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=F64))
    v = drawn(20, seed=4).sign() / 20
    net = TwoLayerNet(1e-4 * drawn(20, 4, seed=5), v, fixed_v=True)
    full, quick = (gradient_flow(net, x, y, until=Until(log_loss=-1.5), scout=s) for s in (0, 8))
    assert quick.net.fixed_v
    assert math.isclose(full.ended[0].log_time, quick.ended[0].log_time, abs_tol=0.1)


def test_scouting_does_not_run_past_a_goal_near_the_start() -> None:
    x, y = axes_data(40, torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=F64))
    flowed = gradient_flow(small(60, 4, 3.0), x, y, until=Until(log_loss=-1e-3), scout=8)
    assert math.isclose(flowed.ended[0].log_loss, -1e-3, rel_tol=0.2)


def test_scouting_sees_a_class_of_one_point_among_thousands() -> None:
    x, y = axes_data(6000, torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, -1.0], dtype=F64))
    rare = (y < 0).nonzero().flatten()[1:]
    x[rare], y[rare] = x[0].clone(), 1.0
    flowed = gradient_flow(
        small(60, 6, 1.0), x, y, until=Until(log_loss=-9.0, evaluations=600), scout=30
    )
    assert flowed.stopped == ["loss"]


def test_scouting_does_not_mind_labels_in_turn() -> None:
    # a part of 20,000 points that takes every eighth would hold one class alone
    x, y = axes_data(20_000, torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=F64))
    flowed = gradient_flow(
        small(30, 4, 1.0), x, y, until=Until(log_loss=-2.0, evaluations=200), scout=20
    )
    assert flowed.stopped == ["loss"]


def test_scouting_many_points_meets_a_time_soon_after() -> None:
    x, y = axes_data(20_000, torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=F64))
    w, v = drawn(40, 4, seed=1), drawn(40, seed=2)
    scale = math.sqrt(0.045 / float((w.norm(dim=1) * v.abs()).sum()))
    for time in (3.0, 4.0, 5.0):
        flowed = gradient_flow(
            TwoLayerNet(scale * w, scale * v, p=3.0), x, y, until=Until(time=time), scout=8
        )
        assert math.isclose(math.exp(flowed.ended[0].log_time), time, rel_tol=1e-3)


def test_weights_too_large_for_the_dtype_are_refused() -> None:
    x, y = torch.eye(2), torch.tensor([1.0, -1.0])
    net = TwoLayerNet(torch.full((2, 2), 1e20), torch.full((2,), 1e20))
    with pytest.raises(CallError, match="weights"):
        gradient_flow(net, x, y, until=Until(time=1.0, evaluations=50))


def test_equal_points_with_opposite_labels_are_found_in_every_place() -> None:
    # a matrix product rounds equal rows differently, by where they stand in its blocks
    for seed in range(8):
        for n, d in ((101, 37), (2003, 200), (7, 784)):
            x, y = drawn(n, d, seed=seed).float(), torch.ones(n)
            i, j = torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:2].tolist()
            x[i], y[i] = x[j].clone(), -1.0
            found = opposed(Points(x[None], y[None], y[None], "exp"))[0]
            assert found.nonzero().flatten().tolist() == sorted((i, j))


def test_a_goal_above_the_floor_of_unequal_twins_is_reached_without_a_warning() -> None:
    # .9 exp(-m) + .001 exp(m) is .06 at its least, far below the .901 of m = 0
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=F64)
    y, c = torch.tensor([1.0, -1.0, 1.0], dtype=F64), torch.tensor([0.9, 0.001, 0.099], dtype=F64)
    flowed = gradient_flow(
        small(20, 2, 1.0, 0.1), x, y, until=Until(log_loss=-1.0), sample_weight=c
    )
    assert flowed.stopped == ["loss"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"record": [0.0, 1.0]}, "record"),
        ({"record": [math.nan]}, "record"),
        ({"record": -3}, "record"),
        ({"scout": -5}, "scout"),
    ],
)
def test_more_wrong_calls_are_answered_in_the_users_words(change: dict, words: str) -> None:
    x, y = drawn(12, 4), torch.sign(drawn(12, seed=1))
    with pytest.raises(CallError, match=words):
        gradient_flow(small(8, 4, 3.0, 0.1), x, y, until=Until(time=1.0), **change)


def test_a_goal_that_is_no_number_is_refused() -> None:
    with pytest.raises(CallError, match="log_loss"):
        Until(log_loss=math.nan)


def test_weights_that_record_gradients_leave_none_behind() -> None:
    x, y = drawn(12, 4), torch.sign(drawn(12, seed=1))
    net = small(8, 4, 3.0, 0.1)
    live = TwoLayerNet(net.w.requires_grad_(), net.v.requires_grad_(), p=3.0)
    flowed = gradient_flow(live, x, y, until=Until(time=1.0))
    assert not flowed.net.w.requires_grad


def test_the_global_generator_is_not_touched() -> None:
    x, y = axes_data(120, torch.tensor([1.0, -1.0], dtype=F64))
    before = torch.get_rng_state()
    gradient_flow(small(20, 2, 1.0), x, y, until=Until(log_loss=-2.0), scout=4)
    assert torch.equal(before, torch.get_rng_state())


def test_every_number_is_finite_where_nothing_can_be_fitted() -> None:
    # a lone neuron of the wrong sign only shrinks
    x, y = torch.tensor([[1.0, 0.0]], dtype=F64), torch.ones(1, dtype=F64)
    net = TwoLayerNet(torch.tensor([[0.1, 0.2]], dtype=F64), torch.tensor([-0.1], dtype=F64), p=3.0)
    with pytest.warns(FlowWarning, match=r"No neuron of sign \+1"):
        flowed = gradient_flow(net, x, y, until=Until(log_loss=-3.0))
    end = flowed.ended[0]
    assert all(math.isfinite(v) for v in (end.log_time, end.log_loss, end.margin, end.residual))
    assert flowed.net.w.isfinite().all()
