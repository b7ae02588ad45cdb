"""li2025.phase: closed forms against brute force and exact radii, claims in made-up worlds."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
import xarray as xr

from benches import new_bench, verdicts
from tacit.certify import radius
from tacit.errors import CallError
from tacit.nets import MultiClassNet, centre_net
from tacit.papers.li2025._shared.synthetic import mixture_of
from tacit.papers.li2025.phase.claims import claims
from tacit.papers.li2025.phase.exhibit import place_of, planes, with_places
from tacit.papers.li2025.phase.nets import decided, flat_of, radii_of, signs
from tacit.papers.li2025.phase.settings import EXHIBITS, Phase
from tacit.papers.li2025.phase.theory import (
    group_radius,
    learned,
    median_gap,
    powers,
    predicted,
    s_meet,
    s_stay,
    typical_ratio,
)

LAPTOP = EXHIBITS[0].scales["laptop"]


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn(sigma, points, config=LAPTOP, seed=0):
    """A mixture in units of sqrt(d), and test points."""
    unit = 1 / math.sqrt(config.d)
    mixture = mixture_of(
        config.d, config.k, config.k // 2, alpha=unit, sigma=sigma * unit, generator=gen(seed)
    )
    return mixture, mixture.sample(points, gen(seed + 1))


# ---- the closed forms


@pytest.mark.parametrize("q", [1, 2, 4])
def test_the_median_gap_is_that_of_many_draws(q):
    e = np.random.default_rng(q).standard_normal((200_000, q + 1))
    gap = e[:, 1:].max(1) - e[:, 0]
    assert median_gap(q) == pytest.approx(np.median(gap), abs=0.02)
    assert abs(median_gap(1)) < 1e-9


@pytest.mark.parametrize("labels", [2, 4, 8])
def test_group_radii_are_the_medians_of_the_ideal_nets(labels):
    """Exact radii of the net of group sums, and the planes, at many points and small noise."""
    mixture, test = drawn(0.5, 1500)
    ways = planes(mixture, test, labels)
    assert group_radius(LAPTOP, labels, 0.5) == pytest.approx(float(ways.median()), rel=0.015)
    group = LAPTOP.k // labels
    w = mixture.centres.unflatten(0, (labels, group)).sum(1, keepdim=True)
    few = slice(8)
    found = radii_of(MultiClassNet(w, signs(labels).double()), test.x[few], test.y[few])
    assert bool((found.lower <= found.upper).all())
    torch.testing.assert_close(found.upper, ways[few], rtol=5e-3, atol=1e-3)
    torch.testing.assert_close(found.lower, ways[few], rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize("p", [3.0, 4.0])
def test_a_power_above_two_has_the_radius_of_the_nearest_centre_to_first_order(p):
    """F^(p), exact: what is left over shrinks faster than the noise."""
    off = []
    for sigma in (0.2, 0.8):
        mixture, test = drawn(sigma, 30)
        ways = planes(mixture, test, LAPTOP.k)
        found = radius(centre_net(mixture, p), test.x, test.y)
        off.append(float(((found.lower + found.upper) / 2 / ways - 1).abs().median()))
    assert off[0] < 0.25 * 0.5 * 0.2 / math.sqrt(LAPTOP.d) + 1e-3
    assert off[1] < 0.02


def test_learned_directions_cost_what_the_mean_of_their_points_costs():
    """Planes of cluster means in place of the centres."""
    config, sigma = replace(LAPTOP, n=80), 1.0
    mixture, test = drawn(sigma, 2000, config)
    N = config.n // config.k
    noise = (
        sigma / math.sqrt(config.d * N) * torch.randn(config.k, config.d, generator=gen(9)).double()
    )
    means = mixture.centres + noise
    along = test.x @ means.T
    own = mixture.labels == test.y.unsqueeze(1)
    pair = [along.masked_fill(~mine, -torch.inf).max(1) for mine in (own, ~own)]
    size = (means[pair[0].indices] - means[pair[1].indices]).norm(dim=1)
    found = ((pair[0].values - pair[1].values) / size).median() / planes(
        mixture, test, config.k
    ).median()
    assert learned(config, sigma) == pytest.approx(float(found), rel=0.02)


def test_averages_catch_up_where_the_two_lines_meet():
    s = s_meet(8)
    config = replace(LAPTOP, sigma=(s * 8,))
    assert group_radius(config, 8, s * 8) == pytest.approx(group_radius(config, 2, s * 8))
    mixture, test = drawn(1.3 * s * 8, 2000)
    assert planes(mixture, test, 2).median() > planes(mixture, test, 8).median()
    mixture, test = drawn(0.7 * s * 8, 2000)
    assert planes(mixture, test, 2).median() < planes(mixture, test, 8).median()


@pytest.mark.parametrize("p", [3.0, 4.0])
@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_a_neuron_stays_at_its_centre_up_to_the_predicted_noise(p, ratio):
    """The iteration t <- R s^(p-1) E relu(t/s + e)^(p-1) from 0: small below the edge, away above it."""

    def rest(s):
        t = 0.0
        for _ in range(400):
            t = min(ratio * s ** (p - 1) * powers(t / s, p), 10.0)
        return t

    edge = s_stay(p, ratio)
    assert rest(0.97 * edge) < 1.5 * edge
    assert rest(1.03 * edge) == 10.0
    assert s_stay(2.0) == 0.0
    assert powers(0.7, 3.0) == pytest.approx((0.49 + 1) * 0.75804 + 0.7 * 0.31225, rel=1e-4)


def test_the_ratio_of_counts_is_that_of_all_ways_to_place_few_neurons():
    counts = [np.bincount([i >> j & 1 for j in range(4)], minlength=2) for i in range(16)]
    wanted = np.median([c.max() / max(c.min(), 1) for c in counts])
    assert typical_ratio(4, 2) == pytest.approx(wanted)


def test_no_closed_form_is_given_at_the_square_or_where_noise_is_large():
    assert math.isnan(predicted(LAPTOP, 2.0, 2, 0.25))
    assert not math.isnan(predicted(LAPTOP, 2.0, 8, 0.25))
    assert math.isnan(predicted(LAPTOP, 3.0, 2, 3.0))
    assert predicted(LAPTOP, 3.0, 2, 1.0) == predicted(LAPTOP, 1.0, 8, 1.0)


# ---- the net


def test_the_largest_logit_decides_and_two_labels_are_a_two_layer_net():
    net = MultiClassNet(torch.randn(4, 3, 6, generator=gen()).double(), signs(4).double(), 3.0)
    x = torch.randn(50, 6, generator=gen(1)).double()
    lead = net.labels[net.logits(x).argmax(1)]
    scores = decided(net)(x)
    assert torch.equal(torch.where(scores[:, 0] > scores[:, 1], 1.0, -1.0).double(), lead)
    two = MultiClassNet(net.w[:2], signs(2).double(), 3.0)
    torch.testing.assert_close(flat_of(two)(x), two(x))


# ---- what is judged, in worlds that are made up


def world(place, *, config=LAPTOP, noise=0.01, seeds=6):
    """Medians of each cell where `place(p, labels, sigma)` puts them between averages (0) and centres (1)."""
    stream, points = np.random.default_rng(0), 5
    counts = [2, 4, 8]
    shape = (len(config.p), len(config.labels), len(config.sigma), seeds, points)
    ideal = np.zeros((len(config.sigma), seeds, len(counts), points))
    for i, sigma in enumerate(config.sigma):
        for j, count in enumerate(counts):
            ideal[i, :, j] = group_radius(config, count, sigma)
    radii = np.zeros(shape)
    for a, b, c in np.ndindex(*shape[:3]):
        p, labels, sigma = config.p[a], config.labels[b], config.sigma[c]
        near, far = ideal[c, 0, 0, 0], ideal[c, 0, -1, 0]
        told = (near + place(p, labels, sigma) * (far - near)) * learned(config, sigma)
        radii[a, b, c] = told * (1 + noise * stream.standard_normal((seeds, 1)))
    dims = ("p", "labels", "sigma", "seed", "point")
    axes = (config.p, config.labels, config.sigma)
    theory = np.array([predicted(config, *at) for at in product(*axes)]).reshape(shape[:3])
    data = xr.Dataset(
        {
            "lower": (dims, 0.99 * radii),
            "upper": (dims, radii),
            "ideal": (("sigma", "seed", "count", "point"), ideal),
            "theory": (dims[:3], theory),
        },
        coords={
            "p": list(config.p),
            "labels": list(config.labels),
            "sigma": list(config.sigma),
            "count": counts,
        },
    )
    return with_places(data)


def in_groups(labels, sigma):
    """Where the averages of groups lie."""
    near, far, here = (group_radius(LAPTOP, c, sigma) for c in (2, 8, labels))
    return (here - near) / (far - near)


def edge(p):
    return s_stay(p, typical_ratio(LAPTOP.neurons // 2, LAPTOP.k // 2)) * math.sqrt(LAPTOP.d)


def true_place(p, labels, sigma):
    """As predicted."""
    if labels == LAPTOP.k or (p > 2 and sigma < edge(p)):
        return 1.0
    if p > 2:
        return in_groups(labels, sigma)
    return in_groups(labels, sigma) + (0.1 if p == 2 else 0.0)


def judged(data):
    return verdicts(tuple(claims(data, LAPTOP, new_bench())))


def test_in_a_world_as_predicted_every_claim_says_so():
    found = judged(world(true_place))
    assert found.pop("labels.relu") == found.pop("average") == "holds"
    assert set(found.values()) == {"as predicted"}
    assert set(found) == {
        "labels", "activation", "activation.fails", "square", "together", "theory.labels", "theory.activation",
    }  # fmt: skip


OTHERWISE = {
    "k labels average": (
        lambda p, labels, s: 0.0 if labels == 8 else true_place(p, labels, s),
        {"labels.relu", "labels", "together", "theory.labels", "theory.activation"},
    ),
    "ReLU decouples": (
        lambda p, labels, s: 1.0 if p == 1 else true_place(p, labels, s),
        {"average", "theory.labels"},
    ),
    "powers do nothing": (
        lambda p, labels, s: in_groups(labels, s),
        {"activation", "theory.activation"},
    ),
    "powers know no edge": (
        lambda p, labels, s: 1.0 if p > 2 else true_place(p, labels, s),
        {"activation.fails"},
    ),
    "the square decouples": (
        lambda p, labels, s: 1.0 if p == 2 else true_place(p, labels, s),
        {"square"},
    ),
    "labels and powers do not mix": (
        lambda p, labels, s: 0.0 if p > 2 and labels > 2 else true_place(p, labels, s),
        {"labels", "together", "theory.activation"},
    ),
}


@pytest.mark.parametrize(("place", "turned"), OTHERWISE.values(), ids=OTHERWISE)
def test_in_a_world_that_is_otherwise_the_claims_turn(place, turned):
    found = judged(world(place))
    denied = {id for id, verdict in found.items() if verdict in ("differs", "not as predicted")}
    assert denied >= turned


def test_a_cell_is_named_only_where_its_interval_lies_on_one_side():
    data = world(lambda p, labels, s: {2: 0.1, 4: 0.5, 8: 0.9}[labels], noise=0.02)
    quiet = data.phase.sel(sigma=0.25)
    for labels, phase in ((2, -1), (4, 0), (8, 1)):
        assert (quiet.sel(labels=labels) == phase).all()
    found = place_of(np.array([0.4, 0.5, 0.6]), np.array([0.5, 0.6, 0.7]))
    assert found.value == pytest.approx(0.55)
    assert found.low < 0.4
    assert found.high > 0.7


# ---- what is refused


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"k": 7}, "k=7"),
        ({"labels": (3,)}, "labels=3: an even number that divides k=8"),
        ({"labels": (2, 16)}, "labels=16"),
        ({"neurons": 41}, "neurons=41: each of 2 labels"),
        ({"p": (0.5,)}, "p"),
        ({"sigma": (0.0,)}, "sigma"),
        ({"sigma": (1.0, 1.0)}, "sigma"),
        ({"n": 8}, "n=8"),
        ({"T": 1}, "T=1"),
        ({"trainings": 0}, "trainings=0"),
        ({"p": ()}, "p"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, says):
    with pytest.raises(CallError, match=says) as error:
        Phase(**wrong)
    assert "\n" not in str(error.value)
