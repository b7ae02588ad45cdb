"""Clean and adversarial training of the symmetric net against float64 autograd over all neurons."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import repeat

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tacit.attack import apgd, pgd
from tacit.attack.norms import known_norm
from tacit.data.sparse_coding import SparseCoding, sparse_coding, two_level_law
from tacit.errors import CallError, RunError
from tacit.nets import SymmetricNet, symmetric_start
from tacit.nets.fired import fired, second_half_counts, slopes
from tacit.nets.smoothed import pair_by_bias, pair_slope, pair_value
from tacit.train.purify.attackers import (
    Around,
    Attacker,
    attacker_of,
    fgm_attacker,
    pgd_attacker,
    random_attacker,
    universal_attacker,
)
from tacit.train.purify.course import Course, awake
from tacit.train.purify.stages import Stage
from tacit.train.purify.training import set_batches, train_symmetric

D, K = 40, 4
SMALL = Stage(60, 0.5, decay=1e-2, noise=0.15, growth=0.4 / D, ceiling=0.25)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def model() -> SparseCoding:
    return sparse_coding(
        torch.eye(D, dtype=torch.float64), two_level_law(D, K), K, sigma_x=0.3, margin=1.0
    )


def a_start(width: int = 60, bias: float = 0.05, sd: float = 0.02) -> SymmetricNet:
    return symmetric_start(D, width, sd, bias, seeded(1))


def stream(seed: int = 2, dtype: torch.dtype = torch.float64) -> Iterator[tuple[Tensor, Tensor]]:
    return model().stream(32, seeded(seed), dtype=dtype)


def of_all_sizes(steps: int) -> SymmetricNet:
    """Trained neurons, and the same at sizes from 0 to 1: some fire, some cannot, some are in between."""
    stage = Stage(steps, 1.0, noise=0.25, growth=0.01, ceiling=0.2)
    net = train_symmetric(a_start(), stream(), [stage]).net
    smaller = net.w * torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(1)
    return SymmetricNet(torch.cat([net.w, smaller]), torch.cat([net.b, net.b]), net.sigma)


def slow(
    net: SymmetricNet,
    batches: Iterator[tuple[Tensor, Tensor]],
    stages: list[Stage],
    perturb: Callable[[SymmetricNet, Tensor, Tensor], Tensor] | None = None,
) -> SymmetricNet:
    """The objective as it is printed, by autograd; Reg = ||w||^2/2 + ||w||^3/3."""
    w, b, sigma = net.w.clone(), net.b.clone(), 0.0
    for stage in stages:
        for _ in range(stage.steps):
            x, y = next(batches)
            sigma = stage.noise * float(b.mean())
            if perturb is not None:
                x = perturb(SymmetricNet(w, b, sigma), x, y)
            leaf = w.clone().requires_grad_()
            f = SymmetricNet(leaf, b, sigma)(x)
            size = leaf.norm(dim=1)
            loss = torch.log1p(torch.exp(-y * f)).mean()
            objective = loss + stage.decay * (size**2 / 2 + size**3 / 3).sum()
            (by_w,) = torch.autograd.grad(objective, leaf)
            w = w - stage.eta * by_w
            b = (b + stage.eta * stage.growth).clamp_max(stage.ceiling)
    return SymmetricNet(w, b, stages[-1].noise * float(b.mean()))


def slow_fgm(radius: float, order: float) -> Callable[[SymmetricNet, Tensor, Tensor], Tensor]:
    def perturb(net: SymmetricNet, x: Tensor, y: Tensor) -> Tensor:
        leaf = x.clone().requires_grad_()
        (g,) = torch.autograd.grad((y * net(leaf)).sum(), leaf)
        way = g.sign() if order == math.inf else g / g.norm(dim=1, keepdim=True)
        return x - radius * way

    return perturb


def test_clean_training_is_the_printed_objective() -> None:
    stages = [SMALL, Stage(120, 1.5, decay=1e-2, noise=0.15, growth=0.4 / D, ceiling=0.25)]
    done = train_symmetric(a_start(), stream(), stages, negligible=0.0)
    wanted = slow(a_start(), stream(), stages)
    torch.testing.assert_close(done.net.w, wanted.w, rtol=0, atol=1e-11)
    torch.testing.assert_close(done.net.b, wanted.b)
    assert done.net.sigma == pytest.approx(wanted.sigma)
    assert float(done.left_out.max()) == 0
    assert bool((done.awake == 1).all())


@pytest.mark.parametrize("order", [2, math.inf])
def test_adversarial_training_is_algorithm_2(order: float) -> None:
    radius = 0.2 if order == 2 else 0.03
    stages = [Stage(80, 1.0, decay=1e-3, noise=0.2)]
    start = train_symmetric(a_start(), stream(), [SMALL]).net
    done = train_symmetric(
        start, stream(5), stages, attacker=fgm_attacker(radius, order), negligible=0.0
    )
    wanted = slow(start, stream(5), stages, slow_fgm(radius, order))
    torch.testing.assert_close(done.net.w, wanted.w, rtol=0, atol=1e-9)


@pytest.mark.parametrize("order", [2, math.inf])
def test_sleepers_change_nothing_that_counts(order: float) -> None:
    """With skipping and without, and what is left out bounds what one step differs by."""
    stages = [SMALL, Stage(300, 1.0, decay=1e-2, noise=0.15, growth=0.4 / D, ceiling=0.25)]
    attacker = fgm_attacker(0.1 if order == 2 else 0.02, order)
    full = train_symmetric(a_start(), stream(), stages, negligible=0.0)
    part = train_symmetric(a_start(), stream(), stages)
    assert float(part.awake[-100:].mean()) < 0.8
    assert float((full.net.w - part.net.w).abs().max()) < 1e-9
    full = train_symmetric(full.net, stream(6), [SMALL], attacker=attacker, negligible=0.0)
    part = train_symmetric(part.net, stream(6), [SMALL], attacker=attacker)
    assert float(part.awake.mean()) < 0.9
    assert float((full.net.w - part.net.w).abs().max()) < 1e-9


@pytest.mark.parametrize("negligible", [1e-3, 1e-5, 2.0**-24])
@pytest.mark.parametrize("attacked", [False, True])
def test_one_step_is_within_what_was_left_out(negligible: float, attacked: bool) -> None:
    """From many states: the sleepers' steps differ by at most the bound, the output by at most its own."""
    attacker = universal_attacker(torch.ones(D, dtype=torch.float64), 0.1) if attacked else None
    one = Stage(1, 1.0, decay=1e-2, noise=0.1)
    slept = 0
    for steps in (20, 60, 150):
        state = of_all_sizes(steps)
        full = train_symmetric(state, stream(9), [one], attacker=attacker, negligible=0.0)
        part = train_symmetric(state, stream(9), [one], attacker=attacker, negligible=negligible)
        gone = part.left_out > 0
        slept += int(gone.sum())
        apart = (full.net.w - part.net.w).norm(dim=1)
        # f is off by at most output_left_out, and so is l' of each point by a quarter of it
        x = next(stream(9))[0]
        pull = 0.25 * part.output_left_out * (float(x.norm(dim=1).mean()) + 0.1)
        assert bool((apart <= part.left_out + pull + 1e-14).all())
        assert float((full.loss - part.loss).abs().max()) <= part.output_left_out + 1e-14
        assert float(apart[gone].max()) > 0  # something was left out, and less than the bound says
    assert slept > 0


def test_the_attack_sees_all_that_it_can_feel() -> None:
    """FGM from the neurons that fire at the points, against FGM from all: it turns by what was left out."""
    state, one = of_all_sizes(60), Stage(1, 1.0, noise=0.08)
    for radius, order in ((0.1, 2), (0.02, math.inf)):
        attacker = fgm_attacker(radius, order)
        full = train_symmetric(state, stream(9), [one], attacker=attacker, negligible=0.0)
        part = train_symmetric(state, stream(9), [one], attacker=attacker, negligible=1e-8)
        assert float(part.awake[0]) < 0.9
        assert float((full.net.w - part.net.w).abs().max()) < 1e-6


def test_decay_waits_for_the_sleepers_and_is_exact() -> None:
    """Neurons that never fire: w shrinks by the recursion of its length alone."""
    net = a_start(30)
    asleep = SymmetricNet(torch.cat([net.w, 1e-3 * net.w]), torch.cat([net.b, net.b]), net.sigma)
    stage = Stage(200, 0.5, decay=0.1, noise=0.1)
    done = train_symmetric(asleep, stream(), [stage])
    size = asleep.w[30:].norm(dim=1)
    for _ in range(200):
        size = size * (1 - 0.05 * (1 + size))
    torch.testing.assert_close(done.net.w[30:].norm(dim=1), size, rtol=1e-12, atol=0)
    way = [t / t.norm(dim=1, keepdim=True) for t in (done.net.w[30:], asleep.w[30:])]
    torch.testing.assert_close(way[0], way[1], rtol=0, atol=1e-13)


@given(st.floats(0, 1.5), st.just(0.0) | st.floats(0.02, 0.4), st.booleans())
def test_the_fast_activation_is_the_closed_form(b: float, sigma: float, single: bool) -> None:
    dtype = torch.float32 if single else torch.float64
    z = torch.linspace(-2, 2, 81, dtype=dtype).view(3, 27)
    bias = torch.full((3,), b, dtype=dtype)
    both = second_half_counts(bias, sigma)
    found = fired(z, bias, sigma, both, by_bias=True)
    far = 40 * torch.finfo(dtype).eps
    bias = bias.unsqueeze(1)
    kink = (z.abs() - bias).abs() < 1e-6  # without noise, both sides of a jump are right
    for got, want in (
        (found.slope, pair_slope(z, bias, sigma)),
        (slopes(z, bias.squeeze(1), sigma, both), pair_slope(z, bias, sigma)),
        (found.by_bias, pair_by_bias(z, bias, sigma)),
    ):
        assert got is not None
        off = (got - want).abs()
        off = off[~kink & (z != 0)] if sigma == 0 or b == 0 else off
        assert float(off.max()) < far
    torch.testing.assert_close(found.f, pair_value(z, bias, sigma).sum(0), rtol=far, atol=far)


def test_the_awake_are_those_that_can_fire() -> None:
    net = of_all_sizes(150)
    x, _ = next(stream(8))
    course = Course.begun(net)
    course.sigma = 0.02
    who = awake(course, x, known_norm(2), 0.1, 1e-6)
    assert who.index is not None
    assert 0 < who.count() < 120
    # brute force over many perturbations in the ball
    delta = 0.1 * known_norm(2).random(x.repeat(200, 1), seeded(4))
    z = (x.repeat(200, 1) + delta) @ net.w.T
    asleep = torch.ones(120, dtype=torch.bool)
    asleep[who.index] = False
    assert float(pair_slope(z[:, asleep], net.b[asleep], 0.02).max()) <= 2e-6
    torch.testing.assert_close(who.z, net.w[who.index] @ x.T)


@pytest.mark.parametrize(
    "attacker",
    [
        fgm_attacker(0.2),
        fgm_attacker(0.2, "inf"),
        fgm_attacker(0.2, 1, least=1e-9),
        pgd_attacker(0.2, steps=5),
        pgd_attacker(0.2, "inf", steps=5, random_start=True),
        universal_attacker(torch.ones(D, dtype=torch.float64), 0.2),
        random_attacker(0.2),
        attacker_of(pgd, 0.2, steps=5, starts=("zero",)),
        attacker_of(apgd, 0.2, "inf", steps=5, starts=("zero",)),
    ],
)
def test_attackers_stay_in_the_ball_and_training_takes_them(attacker: Attacker) -> None:
    net = train_symmetric(a_start(), stream(), [SMALL]).net
    x, y = next(stream(3))
    around = Around(net, x, net.before(x).T, True)
    delta = attacker.delta(around, y, seeded(5))
    assert float(attacker.norm.size(delta).max()) <= 0.2 * (1 + 1e-9)
    done = train_symmetric(
        net, stream(4), [Stage(5, 0.5)], attacker=attacker, generator=seeded(6), negligible=1e-9
    )
    assert bool(done.loss.isfinite().all())


def test_stronger_attackers_lower_the_margin_more() -> None:
    net = train_symmetric(
        a_start(), stream(), [SMALL, Stage(200, 1.0, growth=0.01, ceiling=0.2)]
    ).net
    x, y = next(stream(3))
    around = Around(net, x, net.before(x).T, True)
    margins = [
        float((y * net(x + attacker.delta(around, y, seeded(5)))).mean())
        for attacker in (random_attacker(0.3), fgm_attacker(0.3), pgd_attacker(0.3, steps=20))
    ]
    assert margins[0] > margins[1] >= margins[2] - 1e-3


def test_sampled_noise_is_drawn_as_printed() -> None:
    """One step against autograd of the same draws."""
    net = train_symmetric(a_start(20), stream(), [SMALL]).net
    x, y = next(stream(7))
    one = Stage(1, 1.0, noise=0.3)
    done = train_symmetric(net, repeat((x, y)), [one], noise="sampled", generator=seeded(3))
    leaf = net.w.clone().requires_grad_()
    sigma = 0.3 * float(net.b.mean())
    f = SymmetricNet(leaf, net.b, sigma).sampled(x, seeded(3))
    (by_w,) = torch.autograd.grad(torch.nn.functional.softplus(-y * f).mean(), leaf)
    torch.testing.assert_close(done.net.w, net.w - by_w, rtol=0, atol=1e-12)


def test_trained_biases_follow_their_gradient() -> None:
    net = train_symmetric(a_start(), stream(), [SMALL]).net
    x, y = next(stream(7))
    stage = Stage(1, 0.7, noise=0.3, bias_step=0.5)
    done = train_symmetric(net, repeat((x, y)), [stage])
    leaf = net.b.clone().requires_grad_()
    f = SymmetricNet(net.w, leaf, 0.3 * float(net.b.mean()))(x)
    (by_b,) = torch.autograd.grad(torch.nn.functional.softplus(-y * f).mean(), leaf)
    torch.testing.assert_close(done.net.b, net.b - 0.35 * by_b, rtol=0, atol=1e-9)


def test_a_fixed_set_in_batches_or_whole() -> None:
    s = model().sample(50, seeded(1))
    seen = [next(b) for b in repeat(set_batches(s.x, s.y, 20, seeded(2)), 3)]
    assert [len(x) for x, _ in seen] == [20, 20, 10]
    rows = torch.cat([x for x, _ in seen])
    assert torch.equal(rows.sum(1).sort().values, s.x.sum(1).sort().values)
    whole = next(set_batches(s.x, s.y))
    assert torch.equal(whole[0], s.x)
    for call in (
        lambda: next(set_batches(s.x, s.y, 20)),
        lambda: next(set_batches(s.x, s.y, 60, seeded())),
    ):
        with pytest.raises(CallError, match="batch="):
            call()


def test_moments_are_kept_and_the_start_is_not_touched() -> None:
    net = a_start()
    before = net.w.clone()
    done = train_symmetric(net, stream(), [SMALL], record=(0, 30, 60))
    assert [s.step for s in done.history] == [0, 30, 60]
    # the noise that is kept is that of the biases that are kept
    assert all(s.net.sigma == pytest.approx(0.15 * float(s.net.b.mean())) for s in done.history)
    assert torch.equal(done.history[0].net.w, before)
    assert torch.equal(net.w, before)
    assert torch.equal(done.history[2].net.w, done.net.w)
    again = train_symmetric(net, stream(), [Stage(30, 0.5, 1e-2, 0.15, 0.4 / D, 0.25)])
    assert torch.equal(again.net.w, done.history[1].net.w)


def test_a_net_that_cannot_fire_is_told_before_training() -> None:
    with pytest.raises(
        CallError, match=r"from the first step on the bias 5 .*no neuron can ever fire"
    ):
        train_symmetric(a_start(bias=5.0), stream(), [SMALL])


def test_one_point_a_step_is_not_judged_by_the_first() -> None:
    for seed in range(20):
        train_symmetric(a_start(), ((x[:1], y[:1]) for x, y in stream(seed)), [Stage(3, 0.5)])


def test_trained_biases_stay_thresholds_and_two_calls_are_one() -> None:
    done = train_symmetric(a_start(), stream(), [Stage(60, 0.5, bias_step=20.0)]).net
    assert float(done.b.min()) >= 0
    assert done.sigma == pytest.approx(0.15 * float(done.b.mean()))
    batches = stream()
    half = train_symmetric(a_start(), batches, [Stage(30, 0.5, bias_step=20.0)]).net
    again = train_symmetric(half, batches, [Stage(30, 0.5, bias_step=20.0)]).net
    torch.testing.assert_close(again.b, done.b)
    torch.testing.assert_close(again.w, done.w)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"eta": 2.0, "decay": 0.5}, "eta=2 with decay=0.5"),
        ({"ceiling": math.nan}, "ceiling=nan"),
    ],
)
def test_stages_that_cannot_be_meant(change, words) -> None:
    with pytest.raises(CallError, match=words):
        Stage(**{"steps": 3, "eta": 0.5, **change})


def test_a_negative_bias_is_refused() -> None:
    net = a_start()
    with pytest.raises(CallError, match="the least bias is -"):
        train_symmetric(SymmetricNet(net.w, net.b - 1, net.sigma), stream(), [SMALL])


def test_a_bias_that_outgrows_the_signal_is_told_at_its_step() -> None:
    stage = Stage(400, 0.5, growth=0.05)
    with pytest.raises(RunError, match=r"step (\d+): the bias .*outgrew the signal") as caught:
        train_symmetric(a_start(), stream(), [stage])
    step = int(str(caught.value).split()[1].rstrip(":"))
    # shortly before it, training still goes
    train_symmetric(a_start(), stream(), [Stage(step, 0.5, growth=0.05)])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stages": []}, "at least one Stage"),
        ({"noise": "sampled"}, "give generator"),
        ({"negligible": 0.1}, r"negligible=0.1"),
        ({"record": [99]}, "0 to 60"),
        ({"batches": [(torch.ones(2, 3, dtype=torch.float64), torch.ones(2))]}, "3 columns"),
        ({"batches": [(torch.ones(2, D), torch.ones(2))]}, "must agree"),
        ({"batches": [(torch.ones(2, D, dtype=torch.float64), torch.zeros(2))]}, "labels are -1 or"),
        ({"batches": []}, "ended after 0 steps"),
        ({"net": SymmetricNet(torch.ones(2, 3, D), torch.ones(2, 3))}, "one by one"),
        ({"attacker": random_attacker(0.1)}, "this attacker draws"),
        ({"stages": [Stage(400, 1e200)]}, "lower eta"),
    ],
)  # fmt: skip
def test_bad_calls(change: dict, words: str) -> None:
    call = {"net": a_start(), "batches": stream(), "stages": [SMALL]} | change
    with pytest.raises((CallError, RunError), match=words):
        train_symmetric(call.pop("net"), call.pop("batches"), call.pop("stages"), **call)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Stage(0, 0.1),
        lambda: Stage(1, 0.0),
        lambda: Stage(1, 0.1, decay=-1.0),
        lambda: Stage(1, 0.1, noise=math.nan),
        lambda: Stage(1, 0.1, ceiling=0.0),
        lambda: fgm_attacker(-1.0),
        lambda: fgm_attacker(0.1, 3),
        lambda: pgd_attacker(0.1, steps=0),
        lambda: universal_attacker(torch.zeros(3), 0.1),
    ],
)
def test_settings_that_mean_nothing(make: Callable[[], object]) -> None:
    with pytest.raises(CallError):
        make()


def test_the_bias_grows_to_its_ceiling_and_no_further() -> None:
    stage = Stage(1, 0.5, growth=0.2, ceiling=0.25)
    assert stage.grown(0.1) == pytest.approx(0.2)
    assert stage.grown(0.2) == 0.25
    assert stage.grown(0.3) == 0.3
