"""The flow against other integrators, closed forms, itself in other coordinates; and data it cannot fit."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from torch import Tensor
from torch.nn.functional import softplus

from tacit.data import cluster_mixture, min2024_mixture
from tacit.errors import CallError
from tacit.nets import TwoLayerNet
from tacit.train import FlowWarning, Until, descend, gradient_flow
from tacit.train.flow import field
from tacit.train.flow.checks import checked_points
from tacit.train.flow.neurons import neurons_of

D, N, H = 4, 12, 24


def points(seed: int = 5, n: int = N) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, D, generator=g, dtype=torch.float64)
    y = torch.sign(x[:, 0] + 0.3 * torch.randn(n, generator=g, dtype=torch.float64))
    return x, y


def start(
    kind: str, p: float, seed: int = 6, scale: float = 0.1, h: int = H, d: int = D
) -> TwoLayerNet:
    g = torch.Generator().manual_seed(seed)
    w = scale * torch.randn(h, d, generator=g, dtype=torch.float64)
    v = scale * torch.randn(h, generator=g, dtype=torch.float64)
    r = w.norm(dim=1)
    part = torch.rand(h, generator=g, dtype=torch.float64)
    if kind == "balanced":
        v = v.sign() * r
    if kind == "wide":
        v = v.sign() * r * part
    if kind == "tall":
        v = v.sign() * r * (1 + part)
    return TwoLayerNet(w, v, p=p, fixed_v=kind == "fixed")


def integrated(net: TwoLayerNet, x: Tensor, y: Tensor, loss: str, until: float) -> TwoLayerNet:
    """The same flow in w and v, by autograd and an eighth-order method of scipy."""
    h, d = net.w.shape

    def rate(_: float, state: np.ndarray) -> np.ndarray:
        w = torch.tensor(state[: h * d]).reshape(h, d).requires_grad_()
        v = torch.tensor(state[h * d :]).requires_grad_()
        norm = w.norm(dim=1)
        m = y * ((torch.relu(x @ w.T / norm) ** net.p * norm) @ v)
        (torch.exp(-m) if loss == "exp" else softplus(-m)).mean().backward()
        assert w.grad is not None
        assert v.grad is not None
        dv = torch.zeros_like(v) if net.fixed_v else v.grad
        return -np.concatenate([w.grad.numpy().ravel(), dv.numpy()])

    first = np.concatenate([net.w.numpy().ravel(), net.v.numpy()])
    end = solve_ivp(rate, (0, until), first, method="DOP853", rtol=1e-7, atol=1e-10).y[:, -1]
    w, v = torch.tensor(end[: h * d]).reshape(h, d), torch.tensor(end[h * d :])
    return TwoLayerNet(w, v, p=net.p)


@pytest.mark.parametrize("kind", ["balanced", "wide", "tall", "fixed", "mixed"])
@pytest.mark.parametrize(("p", "loss"), [(3.0, "exp"), (2.2, "logistic")])
def test_agrees_with_an_integrator_of_the_weights(kind: str, p: float, loss: str) -> None:
    x, y = points()
    net = start(kind, p, h=6)
    true = integrated(net, x, y, loss, 4.0)
    errors = []
    for tolerance in (1e-2, 1e-4):
        flowed = gradient_flow(
            net, x, y, until=Until(time=4.0), loss=loss, tolerance=tolerance, merge_angle=0
        )  # type: ignore[call-overload]
        assert math.isclose(math.exp(flowed.ended[0].log_time), 4.0, rel_tol=1e-4)
        errors.append(float((flowed.net.w - true.w).norm() / true.w.norm()))
        errors.append(float((flowed.net.v - true.v).norm() / true.v.norm()))
    assert max(errors[:2]) < 0.05
    assert max(errors[2:]) < 2e-3
    assert sum(errors[2:]) < sum(errors[:2]) / 5


@pytest.mark.parametrize("kind", ["balanced", "mixed"])
def test_relu_agrees_with_small_steps_of_descent_through_the_kinks(kind: str) -> None:
    x, y = points()
    net = start(kind, 1.0)
    end = descend(net, x, y, step=2e-3, steps=1500).net
    flowed = gradient_flow(net, x, y, until=Until(time=3.0), tolerance=1e-3, merge_angle=0)
    assert float((flowed.net(x) - end(x)).abs().max() / end(x).abs().max()) < 5e-3


@pytest.mark.parametrize("kind", ["wide", "tall", "balanced"])
def test_the_balance_of_every_neuron_is_conserved_to_rounding(kind: str) -> None:
    x, y = points()
    net = start(kind, 3.0)
    end = gradient_flow(net, x, y, until=Until(log_loss=-3.0), merge_angle=0).net
    before = net.w.square().sum(1) - net.v.square()
    after = end.w.square().sum(1) - end.v.square()
    assert torch.allclose(before, after, atol=1e-13 * float(end.w.square().sum(1).max()))


def test_a_fixed_second_layer_stays() -> None:
    x, y = points()
    net = start("fixed", 1.0)
    end = gradient_flow(net, x, y, until=Until(time=3.0), merge_angle=0).net
    assert torch.allclose(end.v, net.v)
    assert end.fixed_v


def test_one_neuron_on_one_point_follows_its_closed_form() -> None:
    # balanced, aligned: A' = 2 A exp(-A); Ei(A) - Ei(A_0) = 2 t
    from scipy.special import expi

    x, y = torch.tensor([[1.0, 0.0]], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    net = TwoLayerNet(1e-3 * x, torch.tensor([1e-3], dtype=torch.float64), p=3.0)
    flowed = gradient_flow(net, x, y, until=Until(log_loss=-5.0), tolerance=1e-4)
    A = float(flowed.net.v[0] * flowed.net.w[0].norm())
    assert math.isclose(A, -flowed.ended[0].log_loss, rel_tol=1e-9)
    assert math.isclose(
        math.exp(flowed.ended[0].log_time), (expi(A) - expi(1e-6)) / 2, rel_tol=2e-3
    )


def test_the_loss_falls_to_exp_minus_1000_without_losing_a_digit() -> None:
    mixture = min2024_mixture(6, 3, 2, 0.0)
    y = mixture.labels
    for loss in ("exp", "logistic"):
        flowed = gradient_flow(
            start("balanced", 3.0, scale=1e-3, h=30, d=6), mixture.centres, y,
            until=Until(log_loss=-1000.0), loss=loss,
        )  # fmt: skip  # type: ignore[call-overload]
        end = flowed.ended[0]
        assert end.stopped == "loss"
        assert -1001 < end.log_loss <= -999.99
        margins = y * flowed.net(mixture.centres)
        exact = float(torch.logsumexp(-margins, 0)) - math.log(3)
        assert math.isclose(end.log_loss, exact, rel_tol=1e-6)
        assert end.residual < 5e-3
        assert math.isfinite(end.log_time)


@pytest.mark.parametrize("scale", [1e-7, 1e-30])
def test_weights_far_below_float32_are_followed_in_float32(scale: float) -> None:
    mixture = min2024_mixture(6, 3, 2, 0.0)
    net = start("balanced", 3.0, scale=scale, h=30, d=6)
    ends = [
        gradient_flow(net, x, mixture.labels.to(x), until=Until(log_loss=-5.0), tolerance=1e-3)
        for x in (mixture.centres, mixture.centres.float())
    ]
    double, single = (end.net(mixture.centres) for end in ends)
    assert torch.allclose(double / double.max(), single / single.max(), rtol=1e-3)
    assert math.isclose(ends[0].ended[0].log_time, ends[1].ended[0].log_time, abs_tol=0.01)


def test_merged_and_unmerged_agree() -> None:
    mixture = min2024_mixture(20, 5, 3, 0.1)
    s = mixture.sample(300, torch.Generator().manual_seed(1))
    for p in (1.0, 3.0):
        net = start("balanced", p, scale=1e-5, h=60, d=20)
        full, merged = (
            gradient_flow(net, s.x, s.y, until=Until(log_loss=-6.0), tolerance=2e-3, merge_angle=a)
            for a in (0.0, 0.01)
        )
        assert merged.net.w.shape[0] < 30
        assert full.net.w.shape[0] == 60
        f, g = full.net(s.x), merged.net(s.x)
        # the loss at the end is the same to the length of the last step; compare the functions
        f, g = f / f.abs().max(), g / g.abs().max()
        assert float((f - g).abs().max()) < 1e-3
        assert merged.exactness[0].merge_error < 1e-4
        assert torch.allclose(full.contributions.sum(), merged.contributions.sum(), rtol=5e-3)


def test_members_of_an_ensemble_are_what_they_are_alone() -> None:
    x, y = points()
    nets = [start("mixed", 3.0, seed=s) for s in (1, 2, 3)]
    together = TwoLayerNet(
        torch.stack([n.w for n in nets]), torch.stack([n.v for n in nets]), p=3.0
    )
    flowed = gradient_flow(together, x, y, until=Until(log_loss=-2.0))
    for i, net in enumerate(nets):
        alone = gradient_flow(net, x, y, until=Until(log_loss=-2.0))
        assert torch.allclose(flowed.member(i)(x), alone.net(x), rtol=1e-6)
        assert flowed.ended[i].looks == alone.ended[0].looks


def test_each_member_may_have_its_own_p_and_its_own_points() -> None:
    x, y = points()
    net = start("mixed", 1.0)
    both = TwoLayerNet(net.w.expand(2, -1, -1), net.v.expand(2, -1), p=1.0)
    xs, ys = torch.stack([x, 2 * x]), torch.stack([y, y])
    powers = torch.tensor([1.5, 3.0], dtype=torch.float64)
    flowed = gradient_flow(both, xs, ys, until=Until(time=2.0), powers=powers)
    for i, p in enumerate((1.5, 3.0)):
        alone = gradient_flow(TwoLayerNet(net.w, net.v, p=p), xs[i], y, until=Until(time=2.0))
        assert torch.allclose(flowed.member(i)(x), alone.net(x), rtol=1e-6)
        assert flowed.member(i).p == p


def test_a_bias_is_one_more_coordinate() -> None:
    x, y = points()
    net = start("mixed", 1.0)
    b = 0.1 * torch.ones(H, dtype=torch.float64)
    biased = gradient_flow(TwoLayerNet(net.w, net.v, b), x, y, until=Until(time=2.0)).net
    wide = TwoLayerNet(torch.cat([net.w, b[:, None]], 1), net.v)
    ones = torch.cat([x, torch.ones(N, 1, dtype=torch.float64)], 1)
    plain = gradient_flow(wide, ones, y, until=Until(time=2.0)).net
    assert biased.b is not None
    assert torch.allclose(biased(x), plain(ones), rtol=1e-9)
    assert torch.allclose(biased.b, plain.w[:, -1])


@given(st.integers(0, 1000), st.sampled_from([1.0, 2.0, 3.0]))
def test_turning_all_data_and_weights_turns_the_flow(seed: int, p: float) -> None:
    x, y = points()
    g = torch.Generator().manual_seed(seed)
    q, _ = torch.linalg.qr(torch.randn(D, D, generator=g, dtype=torch.float64))
    order = torch.randperm(H, generator=g)
    net = start("balanced", p)
    turned = TwoLayerNet(net.w[order] @ q, net.v[order], p=p)
    one = gradient_flow(net, x, y, until=Until(time=1.0), merge_angle=0).net
    two = gradient_flow(turned, x @ q, y, until=Until(time=1.0), merge_angle=0).net
    assert torch.allclose(one(x), two(x @ q), rtol=1e-6, atol=1e-9)


def test_sample_weights_count_points_and_scale_time() -> None:
    x, y = points()
    net = start("mixed", 3.0)
    twice = gradient_flow(net, torch.cat([x, x[:3]]), torch.cat([y, y[:3]]), until=Until(time=2.0))
    c = torch.ones(N, dtype=torch.float64) / 15
    c[:3] *= 2
    weighted = gradient_flow(net, x, y, until=Until(time=2.0), sample_weight=c)
    assert torch.allclose(twice.net(x), weighted.net(x), rtol=1e-5)
    summed = gradient_flow(net, x, y, until=Until(time=2.0 / 15), sample_weight=15 * c)
    assert torch.allclose(summed.net(x), weighted.net(x), rtol=1e-3)


def test_the_record_meets_its_times_and_watches_directions() -> None:
    x, y = points()
    net = start("balanced", 3.0)
    times = [0.5, 1.0, 4.0]
    flowed = gradient_flow(
        net, x, y, until=Until(time=5.0), record=times, watch=torch.eye(D, dtype=torch.float64),
        merge_angle=0, tolerance=1e-3,
    )  # fmt: skip
    [history] = flowed.history
    met = torch.tensor([*times, 5.0], dtype=torch.float64)
    assert torch.allclose(history.log_time.exp(), met, rtol=1e-3)
    alone = gradient_flow(net, x, y, until=Until(time=1.0), merge_angle=0, tolerance=1e-3).net
    u = alone.w / alone.w.norm(dim=1, keepdim=True)
    assert torch.allclose(history.cosines[1], u, atol=5e-3)
    assert torch.allclose(history.log_mass[1].exp(), alone.v.abs() * alone.w.norm(dim=1), rtol=2e-2)
    assert bool((history.log_loss.diff() < 0).all())


def test_a_number_of_moments_bounds_the_record() -> None:
    x, y = points()
    flowed = gradient_flow(
        start("mixed", 3.0), x, y, until=Until(time=20.0), record=10, tolerance=1e-3
    )
    frames = len(flowed.history[0].log_time)
    assert 10 <= frames <= 21
    assert flowed.ended[0].looks > 40
    assert flowed.history[0].log_mass.shape == (frames, H)


def test_the_energy_identity_tightens_with_the_tolerance() -> None:
    x, y = points()
    gaps = [
        gradient_flow(start("mixed", 3.0), x, y, until=Until(time=5.0), tolerance=t)
        .exactness[0].energy_error
        for t in (1e-2, 1e-4)
    ]  # fmt: skip
    assert gaps[0] < 0.02
    assert gaps[1] < gaps[0] / 2


def test_scouting_finds_what_all_data_find() -> None:
    mixture = min2024_mixture(50, 6, 4, 0.1, torch.Generator().manual_seed(2))
    s = mixture.sample(1500, torch.Generator().manual_seed(3))
    x, y = s.x.float(), s.y.float()
    g = torch.Generator().manual_seed(4)
    w, v = 1e-7 * torch.randn(300, 50, generator=g), 1e-7 * torch.randn(300, generator=g)
    for p, effective in ((1.0, 2), (3.0, 6)):
        net = TwoLayerNet(w, v, p=p)
        full = gradient_flow(net, x, y, until=Until(log_loss=-8.0))
        quick = gradient_flow(net, x, y, until=Until(log_loss=-8.0), scout=40)
        assert quick.ended[0].looks < full.ended[0].looks / 2
        f, q = full.net(s.x), quick.net(s.x)
        assert float((f - q).abs().max() / f.abs().max()) < 0.02
        assert quick.exactness[0].scout_drift < 0.15
        heavy = quick.net.v.abs() * quick.net.w.norm(dim=1)
        assert int((heavy > 0.05 * heavy.max()).sum()) == effective
        assert quick.contributions.shape == (1, 300)
        assert math.isclose(float(quick.contributions.sum()), float(heavy.sum()), rel_tol=1e-3)


def test_large_weights_are_not_scouted() -> None:
    x, y = points()
    net = start("mixed", 3.0, scale=1.0)
    assert gradient_flow(net, x, y, until=Until(time=1.0), scout=8).exactness[0].scout_drift == 0


def test_stops_when_the_direction_has_converged() -> None:
    mixture = min2024_mixture(6, 3, 2, 0.0)
    flowed = gradient_flow(
        start("balanced", 3.0, scale=1e-3, h=30, d=6), mixture.centres, mixture.labels,
        until=Until(residual=0.01),
    )  # fmt: skip
    assert flowed.stopped == ["direction"]
    assert flowed.ended[0].residual <= 0.01


def test_an_all_zero_row_is_named_and_nothing_is_nan() -> None:
    x, y = points()
    x[3] = 0
    with pytest.warns(FlowWarning) as said:
        flowed = gradient_flow(
            start("mixed", 3.0), x, y, until=Until(log_loss=-5.0, evaluations=150)
        )
    assert "1 of 12 points are all zero" in str(said[0].message)
    assert flowed.stopped[0] in ("budget", "rest")
    assert flowed.net(x).isfinite().all()
    assert math.isfinite(flowed.ended[0].log_loss)


def test_equal_points_with_opposite_labels_are_named() -> None:
    x, y = points()
    x[1], y[0], y[1] = x[0], 1.0, -1.0
    with pytest.warns(FlowWarning) as said:
        flowed = gradient_flow(
            start("mixed", 1.0), x, y, until=Until(log_loss=-5.0, evaluations=400)
        )
    assert "2 of 12 points are equal to a point with the other label" in str(said[0].message)
    assert flowed.net(x).isfinite().all()


def test_a_class_without_a_neuron_is_named_with_the_time() -> None:
    x = torch.eye(3, dtype=torch.float64)
    y = torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64)
    w = torch.tensor([[1.0, 1.0, -0.5], [0.5, 1.0, -1.0]], dtype=torch.float64)
    net = TwoLayerNet(1e-3 * w, 1e-3 * w.norm(dim=1))
    with pytest.warns(FlowWarning, match=r"t = exp.*No neuron of sign -1.*class -1"):
        flowed = gradient_flow(net, x, y, until=Until(log_loss=-3.0, evaluations=300))
    assert flowed.ended[0].looks <= 300


def test_a_net_that_nothing_activates_is_at_rest_at_once() -> None:
    x, y = -torch.eye(2, dtype=torch.float64), torch.tensor([1.0, -1.0], dtype=torch.float64)
    net = TwoLayerNet(torch.ones(3, 2, dtype=torch.float64), torch.ones(3, dtype=torch.float64))
    with pytest.warns(FlowWarning, match="came to rest"):
        flowed = gradient_flow(net, x, y, until=Until(log_loss=-1.0))
    assert flowed.stopped == ["rest"]
    assert flowed.ended[0].looks < 5


def test_the_budget_is_kept_and_reported() -> None:
    x, y = points()
    with pytest.warns(FlowWarning, match="budget of 30 looks"):
        flowed = gradient_flow(
            start("mixed", 3.0), x, y, until=Until(time=1e6, evaluations=30), tolerance=1e-6
        )
    assert flowed.ended[0].looks <= 30


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": torch.full((N, D), math.nan, dtype=torch.float64)}, "NaN or inf"),
        ({"y": torch.zeros(N, dtype=torch.float64)}, r"\+1 and -1"),
        ({"x": torch.ones(N, D + 1, dtype=torch.float64)}, "columns"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"merge_angle": 2.0}, "merge_angle"),
        ({"sample_weight": torch.zeros(N, dtype=torch.float64)}, "sample_weight"),
        ({"powers": torch.ones(3, dtype=torch.float64)}, "powers"),
        ({"record": 5, "scout": 4}, "scout"),
    ],
)
def test_wrong_calls_are_answered_in_the_users_words(change: dict, words: str) -> None:
    x, y = points()
    call = {"x": x, "y": y, "until": Until(time=1.0)} | change
    with pytest.raises(CallError, match=words):
        gradient_flow(start("mixed", 3.0), call.pop("x"), call.pop("y"), **call)


def test_a_neuron_without_direction_and_biases_at_p_3_are_refused() -> None:
    x, y = points()
    net = start("mixed", 3.0)
    w = net.w.clone()
    w[2] = 0
    with pytest.raises(CallError, match=r"neuron 2.*w = 0"):
        gradient_flow(TwoLayerNet(w, net.v, p=3.0), x, y, until=Until(time=1.0))
    with pytest.raises(CallError, match="column of ones"):
        gradient_flow(TwoLayerNet(net.w, net.v, net.v, p=3.0), x, y, until=Until(time=1.0))
    with pytest.raises(CallError, match="when to stop"):
        Until()


@pytest.mark.slow
def test_an_init_whose_square_no_float_has_is_followed_in_logarithms() -> None:
    """2^-900 is 1e-271. Masses grow exponentially, so that the time to fit is as log(1/init) is."""
    mixture = min2024_mixture(6, 3, 2, 0.0)
    net, y = start("balanced", 3.0, scale=1.0, h=30, d=6), mixture.labels.double()
    times = []
    for power in (-90, -900):  # the first is 1e-27
        small = TwoLayerNet(net.w * 2.0**power, net.v * 2.0**power, p=3.0)
        found = gradient_flow(small, mixture.centres, y, until=Until(log_loss=-1.0))
        assert (y * found.net(mixture.centres) > 0).all()
        times.append(math.exp(found.ended[0].log_time))
    assert times[1] / times[0] == pytest.approx(10, rel=0.15)


@pytest.mark.parametrize(("dtype", "scale"), [(torch.float64, 1e-310), (torch.float32, 1e-40)])
def test_a_start_that_has_lost_its_digits_is_refused(dtype: torch.dtype, scale: float) -> None:
    x, y = points()
    net = start("balanced", 2.0)
    small = TwoLayerNet((net.w * scale).to(dtype), (net.v * scale).to(dtype), p=2.0)
    wider = "on$" if dtype == torch.float64 else "float64 from 2.2e-308 on$"
    with pytest.raises(CallError, match=f"has lost digits of its direction: .*{wider}"):
        gradient_flow(small, x.to(dtype), y.to(dtype), until=Until(log_loss=-3.0))


def test_the_halving_check_measures_what_the_tolerance_leaves_open() -> None:
    x, y = points()
    net = start("mixed", 3.0)
    found = []
    for tolerance in (1e-2, 1e-4):
        flowed = gradient_flow(
            net, x, y, until=Until(time=3.0), tolerance=tolerance, check=True, merge_angle=0
        )
        finer = gradient_flow(
            net, x, y, until=Until(time=3.0), tolerance=tolerance / 2, merge_angle=0
        )
        f, g = flowed.net(x), finer.net(x)
        said = flowed.exactness[0].halving
        assert said is not None
        assert math.isclose(said, float((f - g).abs().max() / f.abs().max()), rel_tol=1e-6)
        found.append(said)
    assert found[1] < found[0] / 5
    assert gradient_flow(net, x, y, until=Until(time=3.0)).exactness[0].halving is None


def test_merging_loses_no_balance_worth_naming() -> None:
    mixture = min2024_mixture(6, 3, 2, 0.0)
    net = start("wide", 3.0, scale=1e-4, h=60, d=6)
    flowed = gradient_flow(net, mixture.centres, mixture.labels, until=Until(log_loss=-5.0))
    before = net.w.square().sum() - net.v.square().sum()
    after = flowed.net.w.square().sum() - flowed.net.v.square().sum()
    assert flowed.net.w.shape[0] < 60
    assert 0 < flowed.exactness[0].balance_error < 1e-6
    assert abs(float(before - after)) < 1e-6 * float(flowed.net.w.square().sum())


def test_points_in_blocks_give_the_field_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = points()
    for loss in ("exp", "logistic"):
        whole, blocks = (
            field.field_at(
                neurons_of(start("mixed", 3.0).w[None], start("mixed", 3.0).v[None]),
                checked_points(x, y, torch.full((N,), 0.3, dtype=torch.float64), loss, 1, D),
                3.0,
            )
            for size in (10**9, 5 * H)
            if monkeypatch.setattr(field, "BLOCK", size) is None
        )
        for name in ("G", "turn", "log_loss", "log_pull", "margin"):
            assert torch.allclose(getattr(whole, name), getattr(blocks, name), atol=1e-12), name


def test_neurons_with_a_fixed_second_layer_merge_as_they_would_flow_apart() -> None:
    mixture = min2024_mixture(6, 3, 2, 0.0)
    g = torch.Generator().manual_seed(9)
    w = 1e-3 * torch.rand(24, 6, generator=g, dtype=torch.float64)
    v = torch.where(torch.arange(24) % 2 == 0, 1.0, -1.0).double() * (1 + torch.arange(24) / 24)
    net = TwoLayerNet(w, v / 24, p=1.0, fixed_v=True)
    ends = [
        gradient_flow(
            net, mixture.centres, mixture.labels, until=Until(time=600.0), tolerance=1e-3,
            merge_angle=angle,
        )
        for angle in (0.0, 0.03)
    ]  # fmt: skip
    assert ends[1].net.w.shape[0] < 12
    f, g_ = (end.net(mixture.centres) for end in ends)
    assert torch.allclose(f, g_, rtol=5e-3)
    assert torch.allclose(ends[0].contributions, ends[1].contributions, rtol=0.1, atol=0.02)


def test_a_scouted_run_tells_the_time_and_the_mass_of_those_left_behind() -> None:
    mixture = min2024_mixture(50, 6, 4, 0.1, torch.Generator().manual_seed(2))
    s = mixture.sample(1500, torch.Generator().manual_seed(3))
    g = torch.Generator().manual_seed(4)
    net = TwoLayerNet(
        1e-7 * torch.randn(150, 50, generator=g, dtype=torch.float64),
        1e-7 * torch.randn(150, generator=g, dtype=torch.float64),
        p=3.0,
    )
    until = Until(log_loss=-2.0)
    full = gradient_flow(net, s.x, s.y, until=until)
    quick = gradient_flow(net, s.x, s.y, until=until, scout=40)
    # centres are met one after another in truth, at once after scouting: the time agrees to a tenth or two
    assert math.isclose(quick.ended[0].log_time, full.ended[0].log_time, abs_tol=0.25)
    light = quick.group[0] < 0
    assert bool(light.any())
    assert 0 < float(quick.contributions[0, light].max()) < 1e-2
    heavy = full.contributions[0].argsort(descending=True)[:5]
    assert not bool(light[heavy].any())


def test_a_product_that_decays_below_zero_never_becomes_active() -> None:
    # <u, x_k>' = -p G T <u, x_k> where x_k does not activate u: it may not jump over 0
    mixture = min2024_mixture(3, 3, 2, 0.0)
    u = torch.tensor([[0.8, -0.6, 0.0], [0.0, 0.8, -0.6], [-0.3, -0.3, 0.9]], dtype=torch.float64)
    net = TwoLayerNet(1e-20 * u, 1e-20 * torch.tensor([1.0, 1.0, -1.0]) * u.norm(dim=1), p=1.5)
    flowed = gradient_flow(
        net, mixture.centres, mixture.labels, until=Until(log_loss=-5.0), tolerance=0.02,
        merge_angle=0,
    )  # fmt: skip
    assert float(flowed.net.w[0, 1]) <= 0
    assert float(flowed.net.w[1, 2]) <= 0
    assert float(flowed.net.w[2, :2].max()) <= 0


def test_scouting_does_not_lose_a_rare_cluster() -> None:
    centres = min2024_mixture(20, 3, 2, 0.0).centres
    mixture = cluster_mixture(centres, 2, 0.02, torch.tensor([0.6, 0.01, 0.39]))
    s = mixture.sample(1500, torch.Generator().manual_seed(3))
    g = torch.Generator().manual_seed(4)
    net = TwoLayerNet(
        1e-7 * torch.randn(200, 20, generator=g, dtype=torch.float64),
        1e-7 * torch.randn(200, generator=g, dtype=torch.float64),
        p=3.0,
    )
    end = gradient_flow(net, s.x, s.y, until=Until(log_loss=-7.0), scout=30).net
    u = end.w / end.w.norm(dim=1, keepdim=True)
    heavy = end.v.abs() * end.w.norm(dim=1) > 0.5
    assert float((u[heavy] @ centres.T).amax(0).min()) > 0.99


@pytest.mark.parametrize("goal", [-6.991214275360107, -3.3, -11.0, -20.0])
def test_the_goal_is_met_in_float32_and_not_only_nearly(goal: float) -> None:
    mixture = min2024_mixture(6, 3, 2, 0.05)
    s = mixture.sample(60, torch.Generator().manual_seed(1))
    net = start("balanced", 3.0, scale=1e-3, h=30, d=6)
    flowed = gradient_flow(net, s.x.float(), s.y.float(), until=Until(log_loss=goal))
    assert flowed.stopped == ["loss"]
    assert goal - 0.02 < flowed.ended[0].log_loss <= goal + 1e-6
    assert flowed.ended[0].looks < 400
