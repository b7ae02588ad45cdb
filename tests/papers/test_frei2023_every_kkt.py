"""frei2023.every_kkt: the starts, what is measured on a KKT point, and the claims in made-up worlds."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from benches import new_bench, verdicts
from tacit.attack import frei2023_z
from tacit.errors import CallError
from tacit.nets import TwoLayerNet
from tacit.papers._shared.assumptions import check_assumption, noise_term
from tacit.papers.frei2023._shared.trained import proof_eta
from tacit.papers.frei2023.every_kkt.claims import LEMMAS, claims
from tacit.papers.frei2023.every_kkt.exhibit import group_sizes, reached
from tacit.papers.frei2023.every_kkt.points import (
    NAMES,
    certificate,
    flip_lemmas,
    kept,
    measured,
    nice,
    theory_of,
    told_apart,
)
from tacit.papers.frei2023.every_kkt.settings import EveryKkt
from tacit.papers.frei2023.every_kkt.starts import (
    admitted_overlap,
    flow_start,
    mixture_of,
    on_clusters,
    on_points,
    pattern_of,
    random_groups,
    random_subsets,
)

pytest.importorskip("clarabel")
SMALL = EveryKkt(D=60, K=4, tests=300, repeats=1)
APART = replace(SMALL, D=120)  # products of a class are below -1


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("kind", ["orthogonal", "opposed", "mixed"])
def test_the_means_have_the_products_that_are_said(kind):
    mixture = mixture_of(kind, SMALL, seeded())
    gram = mixture.centres @ mixture.centres.T
    p = 0.98 * admitted_overlap(60, 4, 1e-3)
    assert p > 0
    same = mixture.labels.unsqueeze(1) == mixture.labels
    apart = gram[~torch.eye(4, dtype=torch.bool)]
    torch.testing.assert_close(gram.diagonal(), torch.full((4,), 60.0).double())
    assert check_assumption(mixture).holds
    if kind == "orthogonal":
        assert float(apart.abs().max()) < 1e-9
    elif kind == "opposed":
        expected = (-p * same.double()).fill_diagonal_(60.0)
        torch.testing.assert_close(gram, expected, atol=1e-9, rtol=0)
    else:
        torch.testing.assert_close(
            apart.abs(), torch.full((12,), p, dtype=torch.float64), atol=1e-9, rtol=0
        )


def test_a_larger_overlap_is_not_admitted():
    config = replace(SMALL, means=("opposed",))
    mixture = mixture_of("opposed", config, seeded())
    longer = replace(mixture, centres=mixture.centres.clone())
    gram = (longer.centres @ longer.centres.T).clone()
    gram[0, 1] = gram[1, 0] = -1.01 * admitted_overlap(60, 4, 1e-3)
    longer.centres[:, :4] = torch.linalg.cholesky(gram)
    assert not check_assumption(longer).holds


def test_random_groups_and_sets_cover_every_cluster():
    for seed in range(20):
        groups = random_groups([3, 4, 5], seeded(seed))
        assert sorted(q for group in groups for q in group) == [3, 4, 5]
        subsets = random_subsets([3, 4, 5], seeded(seed))
        assert all(q in mine for q, mine in zip([3, 4, 5], subsets, strict=True))
    samples = mixture_of("opposed", SMALL, seeded()).sample(50, seeded())
    sign, on = on_points(samples, seeded(1))
    assert bool((on & (samples.y.unsqueeze(1) == sign)).any(1).all())


def test_every_start_of_a_flow_is_what_its_name_says():
    mixture = mixture_of("opposed", SMALL, seeded())
    nets = {
        name: flow_start(name, mixture, SMALL, seeded())
        for name in ("small", "NTK-like", "large", "first layer", "second layer", "one sign", "sparse")
    }  # fmt: skip
    assert int((nets["one sign"].v < 0).sum()) == 1
    sizes = {name: (float(net.w.std()), float(net.v.std())) for name, net in nets.items()}
    assert sizes["first layer"][0] > 1e4 * sizes["first layer"][1]
    assert sizes["second layer"][1] > 1e4 * sizes["second layer"][0]
    assert sizes["large"][0] > 1e4 * sizes["small"][0]
    cosine = torch.nn.functional.cosine_similarity(nets["sparse"].w, mixture.centres)
    torch.testing.assert_close(cosine, torch.ones(4).double())


def test_neurons_of_one_pattern_count_once_and_an_unfitted_cluster_is_told():
    mixture = mixture_of("opposed", SMALL, seeded())
    samples = mixture.sample(60, seeded())
    w = mixture.centres[[0, 0, 1, 2, 3]]
    net = TwoLayerNet(w, torch.tensor([1.0, 2, 1, -1, -1]).double(), torch.zeros(5).double())
    found = pattern_of(net, samples)
    assert found is not None
    assert sorted(found[0].tolist()) == [-1, -1, 1, 1]
    lacking = TwoLayerNet(w[:4], torch.tensor([1.0, 2, 1, -1]).double(), torch.zeros(4).double())
    assert pattern_of(lacking, samples) is None


def test_one_neuron_a_cluster_breaks_at_the_closed_form():
    """eta = 1/(g + k_o) up to c', the exact certificate, and the lemmas, on means that keep neurons apart."""
    mixture = mixture_of("opposed", APART, seeded())
    train, test = mixture.sample(70, seeded(1)), mixture.sample(300, seeded(2))
    fine = nice(test, train, mixture)
    for groups, g in (([[[0], [1]], [[2], [3]]], 1), ([[[0, 1]], [[2, 3]]], 2)):
        point = reached(on_clusters(train, groups), train)
        assert point is not None
        assert max(certificate(point, train)) < 1e-6
        np.testing.assert_array_equal(group_sizes(point, train, mixture), g)
        row, medians = measured(point, train, test, mixture, fine)
        assert set(row) == set(NAMES)
        np.testing.assert_allclose(medians, 1 / (g + 2), rtol=theory_of(mixture).c)
        assert row["wrong"] == 0
        assert row["kept_proof"] == 0
        assert all(0 < row[name] <= 1 for name, _ in LEMMAS)


def test_lemmas_d6_to_d8_say_what_happens_at_eta_1_and_at_z():
    """Each number against the net itself: on or off at x -+ eta u on both sides of its eta, N at x -+ z."""
    mixture = mixture_of("opposed", APART, seeded())
    train, test = mixture.sample(70, seeded(1)), mixture.sample(300, seeded(2))
    point = reached(on_clusters(train, [[[0], [1]], [[2], [3]]]), train)
    assert point is not None
    fine = nice(test, train, mixture)
    row, _ = measured(point, train, test, mixture, fine)
    net, known, u = point.net, theory_of(mixture), frei2023_z(mixture)
    x, y = test.x[fine], test.y[fine]
    assert known.p == pytest.approx(0.98 * admitted_overlap(120, 4, 1e-3))
    first = (2 * known.delta + known.p + 1) / (120 - known.delta - 4 * known.p - 4 * known.delta)

    def all_on(eta):
        return all(
            bool(((x + sign * eta * u) @ net.w[j] + net.b[j] >= 0).all())
            for j, sign in enumerate(net.v.sign().tolist())
        )

    assert 0 < row["D.6"] < 1
    assert all_on(first)
    assert all_on(row["D.6"] * first * (1 + 1e-9))
    assert not all_on(row["D.6"] * first * (1 - 1e-6))
    moved = net(x - proof_eta(mixture, 120) * y.unsqueeze(1) * u)
    assert row["D.7"] == pytest.approx(-1 / float(moved[y > 0].max()))
    assert row["D.8"] == pytest.approx(1 / float(moved[y < 0].min()))
    assert max(row["D.7"], row["D.8"]) < 1


def test_a_net_that_z_flips_to_less_than_one_breaks_lemmas_d7_and_d8():
    """A tenth of the net: the same signs everywhere, so what flips still flips, and |N| is a tenth."""
    mixture = mixture_of("opposed", APART, seeded())
    train, test = mixture.sample(70, seeded(1)), mixture.sample(300, seeded(2))
    point = reached(on_clusters(train, [[[0], [1]], [[2], [3]]]), train)
    assert point is not None
    fine, u, eta = nice(test, train, mixture), frei2023_z(mixture), proof_eta(mixture, 120)
    small = replace(point.net, v=0.01 * point.net.v)
    assert kept(small, test, u, eta) == 0
    assert min(flip_lemmas(small, test, u, eta, fine).values()) > 1
    still = flip_lemmas(small, test, u, 0.0, fine)
    assert set(still.values()) == {math.inf}
    assert all(math.isnan(v) for v in flip_lemmas(small, test, u, math.nan, fine).values())
    none = flip_lemmas(small, test, u, eta, fine & (test.y > 0))
    assert math.isnan(none["D.8"])
    assert none["D.7"] > 1


def test_an_overlap_has_no_group_size():
    mixture = mixture_of("mixed", SMALL, seeded())
    train = mixture.sample(70, seeded(1))
    point = reached(on_clusters(train, [[[0], [0, 1]], [[2], [3]]]), train)
    if point is not None and int((point.net.v > 0).sum()) == 2:
        assert np.isnan(group_sizes(point, train, mixture)[:2]).any()


def test_points_that_keep_their_sign_are_counted():
    net = TwoLayerNet(torch.tensor([[1.0], [-1.0]]).double(), torch.tensor([1.0, -1.0]).double())
    mixture = mixture_of("orthogonal", SMALL, seeded())
    test = replace(
        mixture.sample(3, seeded()),
        x=torch.tensor([[1.0], [3.0], [-1.0]]).double(),
        y=torch.tensor([1.0, 1.0, 1.0]).double(),
    )
    # 1 is flipped, 3 is not, -1 was wrong before and stays so
    assert kept(net, test, torch.ones(1).double(), 2.0) == 2
    assert math.isnan(kept(net, test, torch.ones(1).double(), math.nan))


def test_functions_are_told_apart_and_weights_are_not():
    one, two = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 3.1])
    assert told_apart([one, two, one + 1e-5, two]) == [0, 1, 0, 1]


# ---- what is judged, in worlds that are made up

LAPTOP = EveryKkt()
STARTS = ("one a sign", "one a cluster", "flow: small")


def world(*, holds: bool, config: EveryKkt) -> xr.Dataset:
    """Every number on the right side of its bar, or on the wrong one."""
    shape = (len(config.means), config.repeats, len(STARTS))
    dims = ("means", "seed", "start")
    good = {name: 0.5 for name, _ in LEMMAS}
    good |= {"wrong": 0.0, "kept_proof": 0.0, "kept_twice": 0.0, "longest": 1.0}
    bad = {name: 1.2 for name, _ in LEMMAS}
    bad |= {"wrong": 900.0, "kept_proof": 900.0, "kept_twice": 9000.0, "longest": 9.0}
    told = good if holds else bad
    values = {name: np.full(shape, value) for name, value in told.items()}
    values |= {name: np.full(shape, 1e-8) for name in ("stationarity", "slackness")}
    values |= {name: np.ones(shape) for name in ("value", "neurons", "median", "moved")}
    function = np.zeros(shape, dtype=int)
    for i, kind in enumerate(config.means):
        if (kind == "orthogonal") != holds:
            function[i, :, 1] = 1
    K = config.K
    group = np.full((*shape, K), K / 2)
    eta = np.full((*shape, K), (1.0 if holds else 3.0) / K)
    one = dims[:2]
    return xr.Dataset(
        {
            **{name: (dims, value) for name, value in values.items()},
            "function": (dims, function),
            "tried": (dims, np.ones(shape, dtype=bool)),
            "group": ((*dims, "cluster"), group),
            "eta": ((*dims, "cluster"), eta),
            "inside": (one, np.ones(shape[:2], dtype=bool)),
            "nice_set": (one, np.ones(shape[:2], dtype=bool)),
            "nice_points": (one, np.full(shape[:2], 1.0 if holds else 0.99)),
            "overlap": (one, np.full(shape[:2], 1.7 if holds else 40.0)),
        },
        coords={"means": list(config.means), "start": list(STARTS)},
    )


def judged(data, config=LAPTOP):
    return verdicts(claims(data, config, new_bench(scale="laptop")))


def test_every_claim_holds_in_a_true_world_and_differs_in_a_false_one():
    true, false = (judged(world(holds=so, config=EveryKkt())) for so in (True, False))
    assert true.pop("certified") == false.pop("certified") == "holds"
    assert true.pop("lemma.D.5") == false.pop("lemma.D.5") == "vacuous"
    assert len(true) == len(false) == 3 + 3 + 2 + 1 + 9
    assert set(true.values()) == {"holds", "as predicted"}
    assert set(false.values()) == {"differs", "not as predicted"}


def test_where_the_theorem_promises_nothing_it_is_vacuous():
    config = replace(EveryKkt(), D=60, K=4)
    found = judged(world(holds=True, config=config), config)
    assert found["error"] == found["flips"] == "vacuous"


def test_what_has_no_certificate_is_not_judged():
    data = world(holds=False, config=EveryKkt())
    data["stationarity"][..., 0] = np.nan
    for name in ("wrong", "kept_proof", "kept_twice", "longest"):
        data[name][..., 0] = np.nan
        data[name][..., 1:] = 0.0
    found = judged(data)
    assert found["error"] == "holds"


def test_one_bad_kkt_point_of_many_is_enough():
    """The claims are of every KKT point: a good start beside a bad one proves nothing."""
    data, bad = (world(holds=so, config=LAPTOP) for so in (True, False))
    names = [name for name, _ in LEMMAS]
    for name in ("wrong", "kept_proof", "kept_twice", "longest", "eta", "group", *names):
        data[name][:, :, 1] = bad[name][:, :, 1]
    found = judged(data)
    for id in ("error", "flips", "universal", *(f"lemma.{name}" for name in names)):
        assert found[id] == "differs", id
    for id in ("groups", "longest"):
        assert found[id] == "not as predicted", id
    # one cluster of one point has another eta
    data = world(holds=True, config=LAPTOP)
    data["eta"][0, 0, 0, 0] *= 2
    assert judged(data)["groups"] == "not as predicted"


def test_fresh_points_that_are_not_nice_are_held_against_the_lemma_on_every_data_set():
    """20,000 points and a bound of 9e-4: 2 a data set are too few to refute it, 60 on one are enough."""
    data = world(holds=True, config=LAPTOP)
    data["nice_points"][:] = 1 - 2 / 20_000
    assert judged(data)["lemma.A.13"] == "holds"
    data["nice_points"][1, 2] = 1 - 60 / 20_000
    assert judged(data)["lemma.A.13"] == "differs"
    data["nice_set"][1, 2] = False  # of such a data set it says nothing
    assert judged(data)["lemma.A.13"] == "holds"
    data["nice_set"][:] = False
    assert judged(data)["lemma.A.13"] == "not testable here"
    empty = replace(LAPTOP, D=16, K=2)  # 4 n d^(-ln(d)/2) = 1.4
    assert judged(world(holds=False, config=empty), empty)["lemma.A.13"] == "vacuous"


def test_lemma_d5_is_arithmetic_inside_the_assumption_and_judged_outside():
    for holds, verdict in ((True, "holds"), (False, "differs")):
        data = world(holds=holds, config=LAPTOP)
        data["inside"][0, 0] = False
        assert judged(data)["lemma.D.5"] == verdict


@pytest.mark.parametrize("name", ["stationarity", "slackness"])
def test_one_point_that_is_no_kkt_point_fails_the_check(name):
    data = world(holds=True, config=LAPTOP)
    data[name][0, 0, 0] = 1e-2
    assert judged(data)["certified"] == "differs"


def test_a_data_set_without_any_point_is_told_and_one_outside_the_assumption_too():
    data = world(holds=True, config=LAPTOP)
    for name in ("wrong", "kept_proof", "kept_twice"):
        data[name][0, 0] = np.nan
    data["inside"][0, 0] = False
    made = {claim.id: claim for claim in claims(data, LAPTOP, new_bench(scale="laptop"))}
    assert made["error"].verdict == made["flips"].verdict == "not testable here"
    assert "universal" not in made
    assert made["error"].regime.startswith("outside: Assumption 2.2 fails")
    whole = {c.id: c for c in claims(world(holds=True, config=LAPTOP), LAPTOP, new_bench())}
    assert whole["error"].regime.startswith("inside: Assumption 2.2 holds")


def test_the_means_that_overlap_most_decide_lemma_d5_and_the_least_whether_several_are_expected():
    config = replace(EveryKkt(), sigma=0.3)
    data = world(holds=True, config=config)
    data["overlap"][0, 0] = 20.0
    made = {claim.id: claim for claim in claims(data, config, new_bench(scale="laptop"))}
    noise = noise_term(config.D, config.sigma)
    assert noise > 1
    wanted = config.K * (20 + noise) / (config.D - noise)
    assert made["lemma.D.5"].measured == pytest.approx(wanted)
    small, less = (config.K * (p + noise + 1) / (config.D - noise + 1) for p in (20, 1.7))
    data["eta"][:] = (1 + (small + less) / 2) / config.K
    assert judged(data, config)["groups"] == "as predicted"
    data["overlap"][config.means.index("opposed"), 0] = 0.5
    assert "several" not in judged(data, config)


def test_the_length_is_that_of_one_neuron_a_cluster():
    """k/(1 + k/2) sqrt(d/k) is the longest at K = 6, and 1 is what the made-up points have."""
    made = {c.id: c for c in claims(world(holds=True, config=LAPTOP), LAPTOP, new_bench())}
    assert made["longest"].statement.startswith(
        "length along z that flips half of a cluster over 1.5 "
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"means": ("far",)}, "means=far: choose from orthogonal, opposed, mixed"),
        ({"flows": ("fast",)}, "flows=fast: choose from small"),
        ({"log_loss": -1.0}, "log_loss=-1.0: it is at most -15"),
        ({"h": 1}, "h=1: it is at least 2"),
        ({"K": 200}, "K=200 > D=180"),
        ({"sigma": 0.0}, "sigma=0.0: it is a positive number"),
        ({"repeats": 0}, "repeats=0: it is at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(change, told):
    with pytest.raises(CallError, match=told.replace("(", r"\(")):
        replace(EveryKkt(), **change)
