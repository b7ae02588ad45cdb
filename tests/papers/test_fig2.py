"""Figures 2 and 5: the experiment on Conjecture 1, at sizes of seconds."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from benches import Memory, new_bench, verdicts
from tacit.certify import radius
from tacit.data import Samples, min2024_mixture
from tacit.errors import CallError
from tacit.measure.distance.function import function_distance
from tacit.measure.neurons import contributions
from tacit.nets import TwoLayerNet, average_net, centre_net
from tacit.papers.min2024.fig2 import exhibit as fig2
from tacit.papers.min2024.fig2.settings import ALPHAS, EXHIBITS, RADII, Conjecture

SMALL = Conjecture(
    D=40, K=4, K1=2, h=40, n=600, alpha=(0.05, 0.1), points=40, repeats=3, log_loss=-8.0
)


@pytest.fixture(scope="module")
def parts():
    return Memory()


@pytest.fixture(scope="module")
def outcome(parts):
    return fig2.run(SMALL, new_bench(parts))


def test_the_catalogue_has_the_papers_sizes():
    two, five = (exhibit.scales["paper"] for exhibit in EXHIBITS)
    assert (two.D, two.K, two.K1, two.h, two.n, two.init) == (1000, 10, 6, 2000, 20_000, 1e-7)
    assert replace(two, K=20, K1=8) == five
    assert len(ALPHAS) == len(RADII) == 15
    assert (ALPHAS[0], ALPHAS[-1], RADII[0], RADII[-1]) == (0.01, 0.3, 0, 1.5)
    assert len(two.alpha) * two.repeats * len(two.p) == 150


def test_nets_learn_what_the_conjecture_says_and_break_where_theory_says(outcome):
    found = verdicts(outcome.claims)
    sure = {"all.p3", "distance.rises", "exact.fitted", "exact.classes", "exact.merge"}
    assert {id for id in sure if found[id] != "holds"} == set()
    radii = [claim for claim in outcome.claims if claim.id in ("radius.p1", "radius.p3")]
    assert all(claim.measured < 0.02 for claim in radii)  # three nets may leave it undecided


def test_claims_are_as_strong_as_their_nets_and_points(outcome):
    made = {claim.id: claim for claim in outcome.claims}
    assert (made["radius.p1"].n, made["radius.p1"].over) == (3, "nets of an alpha")
    # nets are counted, not their points: six of six show more than half
    for id in ("learned.p1", "learned.p3", "robust.p1", "robust.p3"):
        assert (made[id].n, made[id].over, made[id].measured) == (6, "nets", 1.0)
        assert made[id].verdict == "holds"
    assert made["exact.fitted"].statement.startswith("of these nets: ")
    # one net of each alpha shows nothing about the next
    single = verdicts(fig2.claims(outcome.data.isel(seed=[0]), SMALL, new_bench()))
    assert {single[id] for id in ("distance.p1", "all.p3", "radius.p3")} == {"undecided"}
    # two alphas of which one is sure and one is not
    data = outcome.data.copy(deep=True)
    data.distance.loc[{"p": 1.0, "alpha": 0.1}] = np.array([0.02, 0.09, 0.11])[:, None]
    assert verdicts(fig2.claims(data, SMALL, new_bench()))["distance.p1"] == "undecided"


def test_the_distance_is_the_papers_own(outcome):
    """inf_c sup |c f - F| itself, in units of 1, which is F at a centre: not of sup |F|."""
    made = {claim.id: claim for claim in outcome.claims}
    middle = outcome.data.distance.sel(p=1.0).mean(("end", "seed"))
    assert made["distance.p1"].measured == pytest.approx(float(middle.max()))
    assert made["distance.p1"].regime.startswith("outside: by gradient flow")
    assert (made["distance.p1"].source, made["distance.p1"].verdict) == ("ours", "as predicted")


@pytest.mark.parametrize(("name", "id"), [("distance", "distance.p1"), ("critical", "radius.p3")])
def test_a_loose_bound_decides_nothing(outcome, name, id):
    end = "upper" if name == "distance" else "lower"
    bounds = outcome.data[name]
    loose = outcome.data.assign(
        {name: bounds.where(bounds.end != end, bounds + (0.2 if end == "upper" else -0.2))}
    )
    assert verdicts(fig2.claims(loose, SMALL, new_bench()))[id] == "undecided"


def test_what_is_stored_is_that_of_the_saved_nets(outcome):
    stream = new_bench().generator("fig2", 0.1, seed=0)
    mixture = min2024_mixture(40, 4, 2, 0.1, stream)
    test = mixture.sample(40, stream)
    for p, F in ((1.0, average_net(mixture)), (3.0, centre_net(mixture, 3.0))):
        net, here = outcome.nets[f"p{p:g}-alpha0.1-seed0"], outcome.data.sel(alpha=0.1, seed=0, p=p)
        distance = function_distance(net, F)
        assert here.distance.values.tolist() == [distance.lower, distance.upper]
        radii = radius(net, test.x, test.y)
        # two certificates of one net (at p = 3 by different proofs): the intervals meet
        assert (here.lower.values <= radii.upper.numpy() * (1 + 1e-9)).all()
        assert (radii.lower.numpy() <= here.upper.values * (1 + 1e-9)).all()
        # the shares of the merged neurons add up to the neuron they became
        mass, group = here.contribution.values, here.group.values
        shares = [mass[group == j].sum() for j in range(len(net.v))]
        np.testing.assert_allclose(shares, contributions(net).numpy(), rtol=1e-5)


def test_robust_accuracy_is_counted_from_the_radii(outcome):
    data = outcome.data
    at = data.sel(alpha=0.05, p=3.0)
    for index, r in enumerate(SMALL.radius[1:], start=1):
        kept = [(at[end].values > r).mean() for end in ("lower", "upper")]
        assert at.robust.values[:, index].tolist() == kept
    assert (data.robust.sel(end="lower") <= data.robust.sel(end="upper")).all()
    assert (data.lower <= data.upper).all()


def test_shown_cosines_are_those_of_class_averages_and_centres(outcome):
    data = outcome.data
    mass = data.contribution.sel(alpha=0.1).isel(seed=0)
    for p, own in ((1.0, slice(0, 2)), (3.0, slice(2, 6))):
        heavy = mass.sel(p=p).values > 0.01 * mass.sel(p=p).values.max()
        cosine = data.cosine.sel(p=p).values[heavy]
        assert (cosine[:, own].max(1) > 0.95).all()
    first = data.cosine.sel(p=1.0).values[int(mass.sel(p=1.0).values.argmax())]
    side = slice(2, 4) if first[0] > first[1] else slice(4, 6)
    assert first[side] == pytest.approx(math.sqrt(0.5), abs=0.05)


def test_a_run_that_was_killed_goes_on_and_finds_the_same(outcome, parts):
    assert list(parts) == [f"alpha{alpha}-seed{seed}" for alpha in (0.05, 0.1) for seed in range(3)]
    done = Memory(
        {name: part.copy(deep=True) for name, part in parts.items() if "seed1" not in name}
    )
    # what was finished is not computed again: marked, it comes back marked
    done["alpha0.05-seed0"]["looks"] += 1000
    again = fig2.run(SMALL, new_bench(done))
    assert (again.data.looks > 1000).values.all(-1).ravel().tolist() == [True] + [False] * 5
    assert again.data.drop_vars("looks").identical(outcome.data.drop_vars("looks"))


@pytest.mark.parametrize(
    ("name", "change", "id"),
    [
        ("neurons", lambda a: a * 0, "exact.classes"),
        ("reached", lambda a: a * 0, "exact.fitted"),
        ("within", lambda a: a * 0.9, "learned.p3"),
        ("least", lambda a: a * 0.4, "all.p3"),
        ("critical", lambda a: a * 1.05, "radius.p3"),
        ("critical", lambda a: a * 0.95, "radius.p1"),
        ("kkt_cosine", lambda a: a * 0 + 0.9997, "kkt.p3"),
        ("kkt_residual", lambda a: a * 0 + 0.021, "kkt.p1"),
        ("distance", lambda a: a + 0.2, "distance.p1"),
        ("upper", lambda a: a * 2, "robust.p1"),
        ("lower", lambda a: a / 2, "robust.p3"),
        ("energy_error", lambda a: a + 0.1, "exact.energy"),
        ("merge_error", lambda a: a + 0.1, "exact.merge"),
    ],
)
def test_every_claim_can_fail(outcome, name, change, id):
    wrong = outcome.data.assign({name: change(outcome.data[name])})
    found = verdicts(fig2.claims(wrong, SMALL, new_bench()))[id]
    assert found == ("not as predicted" if id == "distance.p1" else "differs")


def test_more_subclasses_must_break_earlier(outcome):
    many = replace(SMALL, K=20, K1=8)
    spread = 1 + 1e-4 * outcome.data.seed
    data = outcome.data.assign(critical=outcome.data.critical * 0 + spread / math.sqrt(20))
    assert verdicts(fig2.claims(data, many, new_bench()))["earlier"] == "holds"
    late = data.assign(critical=data.critical * math.sqrt(2.1))
    assert verdicts(fig2.claims(late, many, new_bench()))["earlier"] == "differs"
    assert "earlier" not in verdicts(outcome.claims)


def test_slackness_is_that_of_the_pulls():
    x = torch.tensor([[2.0, 0.0], [3.0, 0.0], [0.0, 2.5]])
    y = torch.tensor([1.0, 1.0, -1.0])
    net = TwoLayerNet(torch.eye(2, dtype=torch.float64), torch.tensor([1.0, -1.0]).double())
    found = fig2.of_kkt(net, x, y)
    pull = np.exp([-2.0, -3.0, -2.5])
    assert found["slackness"] == pytest.approx(float(pull @ [0, 0.5, 0.25] / pull.sum()), rel=1e-5)
    # -grad L over (w, v), by hand: a neuron's own points push w_j along x_i, and v_j by its output
    up, down = pull[0] * 2 + pull[1] * 3, pull[2] * 2.5
    expected = 2 * (up + down) / (2 * math.sqrt(2 * (up**2 + down**2)))
    assert found["kkt_cosine"] == pytest.approx(expected, rel=1e-6)
    assert found["kkt_residual"] <= math.sqrt(1 - expected**2) + 1e-9
    assert fig2.of_kkt(net, x, -y)["slackness"] == math.inf


def test_a_net_that_is_F_itself_has_learned_it():
    mixture = min2024_mixture(12, 5, 3, 0.1, torch.Generator().manual_seed(3))
    test = Samples(mixture.centres, mixture.labels, torch.arange(5))
    for p in (1.0, 3.0):
        F = fig2.theory(mixture, p)
        found = fig2.of_net(TwoLayerNet(F.w, 7 * F.v, p=p), mixture, test)
        assert found["distance"][1] < 1e-6
        assert found["within"] == pytest.approx([1, 1])
        assert found["least"] == pytest.approx(1)
        assert found["upper"] == pytest.approx(math.sqrt(1 / 5 if p == 1 else 1 / 2), rel=1e-6)
    # the classes exchanged: every neuron has the wrong sign
    swapped = fig2.of_net(TwoLayerNet(F.w, -F.v, p=3.0), mixture, test)
    assert swapped["within"].tolist() == [0, 0]
    # one centre without a neuron
    fewer = fig2.of_net(TwoLayerNet(F.w[1:], F.v[1:], p=3.0), mixture, test)
    assert fewer["least"] == 0


def test_noise_above_a_tenth_alone_claims_no_radius_and_is_drawn():
    config = replace(SMALL, p=(3.0,), alpha=(0.2,), repeats=1)
    found = fig2.run(config, new_bench())
    assert not {id for id in verdicts(found.claims) if id.startswith(("radius", "robust"))}
    figure = fig2.draw(found.data, config)
    assert len(figure.axes) == 5  # distance, contributions, cosines, their scale, robust accuracy


def test_at_smoke_scale_nothing_is_decided(outcome):
    made = fig2.claims(outcome.data, SMALL, new_bench(scale="smoke"))
    assert set(verdicts(made).values()) == {"not testable here"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"p": (2.0,)}, "p=2: the conjecture is about p = 1"),
        ({"p": (3.0, 3.0)}, "each value once"),
        ({"alpha": (0.0,)}, r"alpha=0\.0"),
        ({"radius": (-1.0,)}, r"radius=-1\.0"),
        ({"init": 0.1}, r"init=0\.1"),
        ({"log_loss": 0.0}, r"log_loss=0\.0"),
        ({"K1": 10}, "K1=10 with K=10"),
        ({"h": 10}, "h=10"),
        ({"n": 10}, "n=10"),
        ({"points": 0}, "points=0"),
        ({"repeats": 0}, "repeats=0"),
    ],
)
def test_impossible_settings_are_refused(change, words):
    with pytest.raises(CallError, match=words):
        Conjecture(**change)
