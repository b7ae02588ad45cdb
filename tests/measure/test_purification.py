"""Angles, mixtures, tickets, density and Lipschitzness against brute force and known answers."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.sparse_coding import (
    incoherent_dictionary,
    sparse_coding,
    two_level_law,
    unitary_dictionary,
)
from tacit.errors import CallError
from tacit.measure.purification.angles import angles, kept_of_start, moved_share, overlap, theta
from tacit.measure.purification.density import participation
from tacit.measure.purification.lipschitz import coordinate_lipschitz, lipschitz_bound
from tacit.measure.purification.lottery import (
    Constants,
    firing,
    foretold,
    kept,
    late_tickets,
    lottery_constants,
    tickets,
    winners,
)
from tacit.measure.purification.mixture import coordinates, mixture
from tacit.nets import SymmetricNet

DOUBLE = torch.float64


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=DOUBLE)


@given(st.integers(0, 50), st.floats(1e-6, 1e6))
def test_theta_is_the_cosine_whatever_the_scale(seed: int, scale: float) -> None:
    u, v = normal(4, 6, seed=seed), normal(4, 6, seed=seed + 1)
    wanted = torch.cosine_similarity(u, v).abs()
    torch.testing.assert_close(theta(scale * u, -v), wanted)
    torch.testing.assert_close(theta(u, u), torch.ones(4, dtype=DOUBLE))
    assert float(theta(torch.zeros_like(u), v).abs().max()) == 0


def test_angles_and_their_sums_are_the_double_sums() -> None:
    start, clean, pure = (normal(5, 7, seed=s) for s in range(3))
    found = angles(start, clean, pure)
    brute = [
        float(theta(clean[i : i + 1], clean[j : j + 1])) for i in range(5) for j in range(i + 1, 5)
    ]
    torch.testing.assert_close(found.pairs, torch.tensor(brute, dtype=DOUBLE))
    torch.testing.assert_close(found.clean_pure, theta(clean, pure))
    top = sum(float(clean[i] @ start[i]) ** 2 for i in range(5))
    low = sum(float(clean[i] @ clean[i]) * float(start[i] @ start[i]) for i in range(5))
    assert kept_of_start(start, clean) == pytest.approx(top / low)
    top = sum(float(clean[i] @ clean[j]) ** 2 for i in range(5) for j in range(5))
    low = sum(float(clean[i] @ clean[i]) for i in range(5)) ** 2
    assert overlap(clean) == pytest.approx(top / low)
    assert moved_share(clean, 1.5 * clean) == pytest.approx(0.25)
    with pytest.raises(CallError, match="one shape"):
        angles(start, clean, pure[:4])
    with pytest.raises(CallError, match="all weights are 0"):
        overlap(torch.zeros(2, 2))


@pytest.mark.parametrize("size", [(8, 8), (8, 5), (8, 12)])
def test_a_planted_mixture_is_found(size: tuple[int, int]) -> None:
    d, D = size
    M = unitary_dictionary(d, D, seeded(1)) if d >= D else incoherent_dictionary(d, D, seeded(1))
    star = torch.linspace(0.5, 1.5, D, dtype=DOUBLE) * torch.tensor([1.0, -1.0] * D)[:D]
    feature = torch.tensor([2, 0, 4, 4])
    alpha, beta = torch.tensor([3.0, -4.0, 5.0, 9.0], dtype=DOUBLE), 0.1 * normal(4, D).abs()
    beta[torch.arange(4), feature] = 0
    coefficients = (beta + torch.nn.functional.one_hot(feature, D) * alpha[:, None]) * star
    found = mixture(coefficients @ M.T, M, star, feature=feature)
    if d >= D:
        free = mixture(coefficients @ M.T, M, star)
        assert torch.equal(free.feature, feature)
        torch.testing.assert_close(found.alpha, alpha)
        torch.testing.assert_close(found.beta, beta)
        torch.testing.assert_close(found.dense, beta.sum(1) / (D - 1))
        pure = (alpha * star[feature])[:, None] * M[:, feature].T
        torch.testing.assert_close(found.along, (coefficients @ M.T - pure) @ (M @ star))
    # the parts add up to the neuron, whatever the dictionary
    again = (
        found.beta * star
        + torch.nn.functional.one_hot(feature, D) * (found.alpha * star[feature])[:, None]
    )
    torch.testing.assert_close(again @ M.T, coefficients @ M.T)
    assert float(found.rest.max()) < 1e-12


def test_the_rest_lies_outside_the_span() -> None:
    M = unitary_dictionary(8, 5, seeded(1))
    w = normal(3, 8)
    inside = w @ M @ M.T
    torch.testing.assert_close(
        mixture(w, M, torch.ones(5, dtype=DOUBLE)).rest, (w - inside).norm(dim=1)
    )
    torch.testing.assert_close(coordinates(w, M), w @ M)
    bent = M + 1e-6 * normal(8, 5)  # nearly orthonormal is not orthonormal
    wanted = w @ torch.linalg.pinv(bent).T
    torch.testing.assert_close(coordinates(w, bent), wanted, rtol=1e-12, atol=1e-12)
    with pytest.raises(CallError, match="w\\* has a 0"):
        mixture(w, M, torch.zeros(5))
    with pytest.raises(CallError, match="must agree"):
        coordinates(w[:, :4], M)


@given(st.integers(1, 30), st.floats(1e-30, 1e30))
def test_participation_counts_equal_features(count: int, scale: float) -> None:
    M = unitary_dictionary(30, 30, seeded(2))
    row = scale * M[:, :count].sum(1, keepdim=True).T
    assert float(participation(row, M)) == pytest.approx(count, rel=1e-9)


def test_participation_of_random_directions() -> None:
    M = unitary_dictionary(60, 60, seeded(2))
    drawn = participation(normal(3000, 60), M)
    # E over the sphere is near D/3, from below by Jensen up to O(1)
    assert abs(float(drawn.mean()) - 60 / 3) < 2
    assert bool((drawn >= 1).all() & (drawn <= 60).all())
    with pytest.raises(CallError, match="length 0"):
        participation(torch.zeros(1, 60), M)


def brute_tickets(w, M, star, s, c: Constants) -> tuple[list, list, list]:
    """Definition B.1 line by line."""
    h, d, D = len(w), w.shape[1], M.shape[1]
    log = math.log(d)
    sure, pot, ept = [], [], []
    for i in range(h):
        a = [float(w[i] @ M[:, j]) for j in range(D)]
        high, low = (c.c1 + c.c2) * s * s * log, (c.c1 - c.c2) * s * s * log
        pot.append([t * t >= low for t in a])
        sure.append([
            a[j] ** 2 >= high
            and all(a[q] ** 2 < low for q in range(D) if q != j)
            and (a[j] > 0) == (float(star[j]) > 0)
            for j in range(D)
        ])  # fmt: skip
        ept.append(
            float(w[i] @ w[i]) <= 2 * s * s * d
            and sum(t * t >= low for t in a) <= c.few
            and sum(t * t >= 2 * s * s * math.sqrt(log) for t in a) <= 2 ** -math.sqrt(log) * d
            and sum(abs(t) <= s / log for t in a) >= c.flat * d / log
        )
    return sure, pot, ept


def test_tickets_are_the_definition() -> None:
    d, m, s = 30, 300, 0.01
    M, star = unitary_dictionary(d, d, seeded(3)), normal(d, seed=4).sign()
    w = s * normal(m, d, seed=5)
    for constants in (
        lottery_constants(m, d),
        Constants(1.2, 0.3, few=2),
        Constants(2.0, 0.05, flat=0.5),
    ):
        found = tickets(w, M, star, s, constants)
        sure, pot, ept = brute_tickets(w, M, star, s, constants)
        assert found.sure.tolist() == sure
        assert found.pot.tolist() == pot
        assert found.ept.tolist() == ept
        assert bool((found.sure <= found.pot).all())
        assert bool((found.sure.sum(1) <= 1).all())


def test_lucky_neurons_are_as_many_as_gaussians_say() -> None:
    """p1 of Lemma B.2's proof: |S_pot| of a feature is binomial(m, Pr[g^2 >= (c1 - c2) log d])."""
    d, m = 50, 20_000
    constants = lottery_constants(m, d)
    w = normal(m, d, seed=6)
    found = tickets(w, torch.eye(d, dtype=DOUBLE), torch.ones(d), 1.0, constants)
    threshold = math.sqrt((constants.c1 - constants.c2) * math.log(d))
    p = math.erfc(threshold / math.sqrt(2))
    assert abs(float(found.pot.double().mean()) - p) < 5 * math.sqrt(p / (m * d))


def test_late_sets_winners_and_what_was_foretold() -> None:
    d = 20
    M, star = torch.eye(d, dtype=DOUBLE), torch.ones(d, dtype=DOUBLE)
    w = 1e-4 * normal(3, d)
    w[0, 4], w[1, 7], w[2, 2] = 1.0, -1.0, 0.1
    late = late_tickets(
        w, M, star, scale=0.1, bias=0.2, k=4.0, beta=0.05, constants=Constants(2.2, 0.1)
    )
    assert late.sure.nonzero().tolist() == [[0, 4]]  # 1 >= 4 * 4 * .04, and the sign of w*
    assert late.pot.nonzero().tolist() == [[0, 4], [1, 7]]  # .1 < 4 * .2 / (20 * .05) = .8
    assert late.ept.tolist() == [False, False, True]
    assert late.ept_more.tolist() == [True, True, True]
    assert winners(w, M).tolist() == [4, 7, 2]
    assert winners(w, M, w_star=star)[[0, 2]].tolist() == [4, 2]
    assert winners(w, M, w_star=-star)[1] == 7
    alive = torch.tensor([True, False, True])
    assert winners(w, M, alive).tolist() == [4, -1, 2]
    begun = tickets(w, M, star, 0.1, Constants(2.2, 0.1))
    assert foretold(begun, winners(w, M)) == 1.0
    assert kept(begun.sure, late.sure) == 1.0
    assert kept(late.pot, late.sure) == 0.5
    net = SymmetricNet(w, torch.full((3,), 0.5, dtype=DOUBLE))
    assert firing(net, M, rows=7).tolist() == [True, True, False]
    for call in (
        lambda: kept(late.sure & False, late.sure),
        lambda: foretold(begun, torch.full((3,), -1)),
        lambda: lottery_constants(10, 20),
        lambda: lottery_constants(40, 20, gamma=0.5),
    ):
        with pytest.raises(CallError):
            call()


def test_constants_of_the_lemma() -> None:
    found = lottery_constants(1000, 100, gamma=0.1)
    assert found.c1 == pytest.approx(2 + 0.9)
    assert found.c2 == pytest.approx(0.05)
    assert found.scale(0.3, 100) * math.sqrt(found.c1 * math.log(100)) == pytest.approx(0.3)


def test_lipschitzness_of_a_linear_net_is_its_slope_and_the_bound_holds() -> None:
    M = unitary_dictionary(12, 12, seeded(1))
    model = sparse_coding(M, two_level_law(12, 3), 3, sigma_x=0.3)
    s = model.sample(50, seeded(2))
    w, features = normal(9, 12), torch.arange(12)
    linear = SymmetricNet(w, torch.zeros(9, dtype=DOUBLE))  # b = 0: f = sum <w_i, x>
    found = coordinate_lipschitz(linear, s.x, s.z, M, features)
    torch.testing.assert_close(found, (w @ M).sum(0).abs())
    net = SymmetricNet(w, torch.full((9,), 0.7, dtype=DOUBLE), 0.1)
    bound = lipschitz_bound(net, M)
    found = coordinate_lipschitz(net, s.x, s.z, M, features, grid=10)
    assert bool((found <= bound + 1e-12).all())
    # against the definition, feature by feature and point by point
    worst = 0.0
    for n in range(50):
        without = s.x[n] - s.z[n, 3] * M[:, 3]
        for step in range(1, 11):
            for sign in (1, -1):
                moved = without + sign * step / 10 * M[:, 3]
                change = float(net(moved[None]) - net(without[None]))
                worst = max(worst, abs(change) / (step / 10))
    assert float(found[3]) == pytest.approx(worst)
    half = coordinate_lipschitz(net, s.x, s.z, M, features, grid=10, quantile=0.5)
    assert bool((half <= found).all())
    for call in (
        lambda: coordinate_lipschitz(net, s.x, s.z, M, features, grid=0),
        lambda: coordinate_lipschitz(net, s.x, s.z, M, features, quantile=0.0),
        lambda: lipschitz_bound(SymmetricNet(w, -net.b), M),
    ):
        with pytest.raises(CallError):
            call()
