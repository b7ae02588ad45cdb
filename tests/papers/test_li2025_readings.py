"""li2025's Appendices B and C: recursions (Corollary C.8) against descent, readings against loops."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.papers.li2025._shared import readings
from tacit.papers.li2025._shared.coefficients import (
    class_dynamics_of,
    dynamics_of,
    followed,
)
from tacit.papers.li2025._shared.compact import binary_net, classes_net, compact_problem
from tacit.papers.li2025._shared.readings import (
    approximations,
    begun,
    first_begun,
    ordered,
    parts_away,
    reading_of,
    watched,
)
from tacit.papers.li2025._shared.synthetic import (
    binary_start,
    mixture_of,
    multi_start,
    train_classes,
)
from tacit.papers.li2025.sweeps.sweep import class_growth


def gen(seed):
    return torch.Generator().manual_seed(seed)


def small(seed, sigma_w=1e-3, d=30, k=3, n=15, h=2):
    stream = gen(seed)
    mixture = mixture_of(d, k, 1, generator=stream)
    samples = mixture.sample(n, stream)
    return mixture, samples, multi_start(d, mixture.labels, h, sigma_w, stream)


def carried(problem, eta, steps):
    at = problem.zero()
    for _ in range(steps):
        at = problem.step(at, problem.seen(at), eta)
    return at


@given(st.integers(0, 10_000), st.floats(1e-3, 0.1))
def test_the_recursions_of_corollary_c8_are_gradient_descent(seed, eta):
    mixture, samples, start = small(seed)
    problem = class_dynamics_of(start, mixture, samples)
    at = carried(problem, eta, 20)
    net = train_classes(start, samples, eta, 20).net
    w = net.w.flatten(0, 1)
    assert torch.allclose(problem.rebuilt(at), w, rtol=0, atol=1e-12 * float(w.norm()))
    own = net.logits(samples.x)[torch.arange(15), samples.z]
    assert torch.allclose(problem.seen(at).margin, own, atol=1e-10)


def test_one_step_is_the_gradient_of_the_cross_entropy_by_autograd():
    mixture, samples, start = small(3)
    problem = class_dynamics_of(start, mixture, samples)
    w = start.w.clone().requires_grad_()
    logits = (samples.x @ w.flatten(0, 1).T).relu().unflatten(1, (3, 2)).mean(2)
    torch.nn.functional.cross_entropy(logits, samples.z).backward()
    after = problem.rebuilt(carried(problem, 0.1, 1))
    assert torch.allclose(after, (start.w - 0.1 * w.grad).flatten(0, 1), atol=1e-14)


def test_derivatives_keep_their_digits_where_p_rounds_to_one():
    mixture, samples, start = small(4)
    problem = class_dynamics_of(start, mixture, samples)
    at = problem.zero()
    at = replace(at, lam=torch.where(problem.own_clusters, 60.0, 0.0).double())
    seen = problem.seen(at)
    own = seen.slope[samples.z, torch.arange(15)]
    assert (own < 0).all()
    assert (own > -1e-17).any()  # 1 - p would be 0
    assert torch.allclose((-own).log(), problem.log_pull(seen))
    assert torch.allclose(seen.slope.sum(0), torch.zeros(15).double(), atol=1e-15)


def test_coefficients_satisfy_corollary_c7_and_keep_their_signs():
    mixture, samples, start = small(6, d=60)
    problem = class_dynamics_of(start, mixture, samples)
    at = carried(problem, 0.05, 30)
    for s in range(3):
        for r in range(2):
            for j in range(3):
                here = samples.z == j
                noise = samples.x[here] - mixture.centres[j]
                by_hand = 60 * (at.sigma[2 * s + r, here] / noise.square().sum(1)).sum()
                assert float(at.lam[2 * s + r, j]) == pytest.approx(float(by_hand), abs=1e-12)
                assert (at.lam[2 * s + r, j] >= 0) if s == j else (at.lam[2 * s + r, j] <= 0)


def test_growing_steps_follow_the_same_course_as_descent():
    """lambda at eta t = 2: 2,000 steps of descent against growing ones, and the law of `thm4_7`."""
    problem = class_dynamics_of(*reversed_args(small(9, sigma_w=1e-6, d=400, n=60)))
    at = carried(problem, 1e-3, 2000)
    *_, (t, grown, _) = followed(problem, 1e-3, 100, 2.0, 0.05)
    assert t * 1e-3 == pytest.approx(2.0, rel=0.05)
    near = problem.own_clusters
    assert float(grown.lam[near].mean()) == pytest.approx(float(at.lam[near].mean()), rel=0.02)
    assert float(at.lam[near].mean()) == pytest.approx(class_growth(400, 3, 60, 2, 2.0), rel=0.1)


def reversed_args(made):
    mixture, samples, start = made
    return start, mixture, samples


# ---- what is read off


@pytest.mark.parametrize("net", ["two", "classes"])
def test_approximations_and_parts_are_what_the_vectors_say(net):
    stream = gen(1)
    problem = compact_problem(400, 3, 1, 20, 6, stream)
    if net == "two":
        start = binary_net(problem.rows, 1e-2, stream, torch.float64)
        dynamics = dynamics_of(start, problem.mixture, problem.train)
    else:
        start = classes_net(problem.rows, problem.mixture, 1e-2, torch.float64)
        dynamics = class_dynamics_of(start, problem.mixture, problem.train)
    at = carried(dynamics, 0.02, 25)
    w, x, z, mu = dynamics.rebuilt(at), problem.train.x, problem.train.z, problem.mixture.centres
    xi = x - mu[z]
    found = approximations(dynamics, at)
    lam, sigma = at.lam, at.sigma
    assert found["error_feature"] == pytest.approx(float((w @ mu.T - lam).abs().max()), rel=1e-9)
    assert found["error_noise"] == pytest.approx(float((w @ xi.T - sigma).abs().max()), rel=1e-9)
    off = w @ x.T - lam[:, z] - sigma
    assert found["error_point"] == pytest.approx(float(off.abs().max()), rel=1e-9)
    d, near = 400.0, dynamics.own_clusters
    first = lam[near][0]
    goal = torch.stack([first / d * mu[row].sum(0) for row in near])
    parts = parts_away(dynamics, at)
    assert parts["away"] == pytest.approx(20 * float((w - goal).norm(dim=1).max()), rel=1e-9)
    noise = torch.stack([(row / xi.square().sum(1)) @ xi for row in sigma])
    assert parts["L4"] == pytest.approx(20 * float(noise.norm(dim=1).max()), rel=1e-9)
    squares = sum(parts[name] ** 2 for name in ("L1", "L2", "L3", "L4"))
    assert parts["away"] <= 2 * math.sqrt(squares)


def test_readings_of_lemmas_c17_to_c21_are_what_loops_say():
    mixture, samples, start = small(7, d=40)
    problem = class_dynamics_of(start, mixture, samples)
    at = carried(problem, 0.05, 12)
    seen = problem.seen(at)
    row = reading_of(problem, at, seen, 12) | approximations(problem, at)
    logits = train_classes(start, samples, 0.05, 12).net.logits(samples.x)
    p = torch.softmax(logits, 1)
    z, n, k = samples.z, 15, 3
    q = [float(logits[i, z[i]]) for i in range(n)]
    pull = [1 - float(p[i, z[i]]) for i in range(n)]
    foreign = max(float(logits[i, s]) for i in range(n) for s in range(3) if s != z[i])
    assert row["foreign"] == pytest.approx(foreign)
    own = [(i, float(at.sigma[2 * z[i] + r, i])) for i in range(n) for r in range(2)]
    assert row["q_above"] == pytest.approx(max(q[i] - 2 * n / k * s for i, s in own))
    assert row["pull_below"] == pytest.approx(
        min(math.log(pull[i]) + 2 * n / k * s for i, s in own)
    )
    pairs = [(i, j) for i in range(n) for j in range(n) if q[i] >= q[j]]
    rise = {(i, j): math.log(pull[j] / pull[i]) for i, j in pairs}
    above = max(rise[i, j] - (q[i] - q[j]) for i, j in pairs)
    below = max(math.log((math.exp(q[i] - q[j]) + k - 1) / k) - rise[i, j] for i, j in pairs)
    assert row["order_above"] == pytest.approx(above, abs=1e-9)
    assert row["order_below"] == pytest.approx(below, abs=1e-9)
    # Lemma C.18 itself, with the largest foreign output for eps
    assert max(above, below) <= math.log1p(2 * foreign) + 1e-12


@pytest.mark.parametrize("net", ["two", "classes"])
@pytest.mark.parametrize("block", [1, 4, 64])
def test_ordered_pairs_are_those_of_two_loops_and_ties_count_both_ways(net, block, monkeypatch):
    monkeypatch.setattr(readings, "BLOCK", block)
    mixture, samples, start = small(7, d=40)
    if net == "two":
        problem = dynamics_of(binary_start(40, 2, 1e-3, 1e-3, gen(1)), mixture, samples)
    else:
        problem = class_dynamics_of(start, mixture, samples)
    seen = problem.seen(carried(problem, 0.05, 12))
    margin = seen.margin - seen.margin.median()  # of both signs
    margin[3] = margin[9]  # a tie: their derivatives are not told, so the pair counts both ways
    seen = replace(seen, margin=margin)
    q, pull = margin.tolist(), (problem.log_pull(seen) + 0.1 * torch.arange(15)).tolist()
    monkeypatch.setattr(
        type(problem), "log_pull", lambda *_: torch.tensor(pull, dtype=torch.float64)
    )
    found = ordered(problem, seen)
    above, below, mended = -math.inf, -math.inf, -math.inf
    for i in range(15):
        for j in range(15):
            if q[i] >= q[j]:
                gap, rise = q[i] - q[j], pull[j] - pull[i]
                low = gap / 2 if net == "two" else math.log((math.exp(gap) + 2) / 3)
                above, below = max(above, rise - gap), max(below, low - rise)
                if q[i] + q[j] >= 0:
                    mended = max(mended, low - rise)
    assert found["order_above"] == pytest.approx(above, abs=1e-12)
    assert found["order_below"] == pytest.approx(below, abs=1e-12)
    if net == "two":
        assert found["order_mended"] == pytest.approx(mended, abs=1e-12)


def test_a_neuron_without_an_active_own_point_is_noticed():
    problem = class_dynamics_of(*reversed_args(small(8)))
    active = (problem.first >= 0) & problem.own
    assert begun(problem) == bool(active.any(1).all())
    first = problem.first.clone()
    first[0] = torch.where(problem.own[0], -first[0].abs(), first[0])
    lost = replace(problem, first=first)
    assert not begun(lost)
    good = replace(problem, first=problem.first.abs())
    assert first_begun(iter([("a", lost), ("b", good)]), lambda draw: draw[1]) == (1, ("b", good))


def test_watched_readings_begin_after_the_first_step():
    problem = class_dynamics_of(*reversed_args(small(2)))
    data, end = watched(problem, followed(problem, 1e-2, 10, 1.0, 0.3), 100.0, 2)
    assert data.t.values[0] == 1
    assert (np.diff(data.t.values) > 0).all()
    assert len(data.t) == 5
    assert float(end.lam.max()) == pytest.approx(float(data.lam_most[-1]))
