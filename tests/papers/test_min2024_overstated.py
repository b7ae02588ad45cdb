"""`min2024.overstated`: attacks against exact radii, and its claims in worlds that are made up."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from benches import new_bench, verdicts
from tacit.certify import radius
from tacit.data import min2024_mixture
from tacit.errors import CallError
from tacit.lab import Expected
from tacit.nets import average_net, centre_net
from tacit.papers._shared.crossed import crossed
from tacit.papers.min2024.images.grounds import mnist_missing, of_mnist, prefixed
from tacit.papers.min2024.overstated.attacks import (
    ALL,
    ATTACKS,
    COMMON,
    FOUR,
    ON_FEW,
    TOOLS,
    UNTRIED,
    Ground,
    broken_by,
    by_tools,
    costs,
)
from tacit.papers.min2024.overstated.claims import (
    chosen,
    claims,
    clusters_of,
    image_claims,
    images_of,
)
from tacit.papers.min2024.overstated.exhibit import beside
from tacit.papers.min2024.overstated.grounds import proved_radius
from tacit.papers.min2024.overstated.settings import EXHIBITS, Overstated

SMOKE, LAPTOP = EXHIBITS[0].scales["smoke"], EXHIBITS[0].scales["laptop"]
CHEAP = replace(LAPTOP, steps=10, short=8, queries=5)


@pytest.fixture(autouse=True)
def shorter(monkeypatch):
    monkeypatch.setattr("tacit.papers.min2024.overstated.attacks.ZERO_STEPS", 30)


@pytest.fixture(scope="module")
def mixture():
    return min2024_mixture(25, 6, 3, 0.01, torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def points(mixture):
    return mixture.sample(30, torch.Generator().manual_seed(1))


def ground(points, radii):
    return Ground(points.x, points.y, "2", radii, None, None, (5, 5, 1), 10)


# ---- attacks, next to radii that are exact


def test_the_zero_start_sees_nothing_at_three_quarters_where_every_point_breaks(mixture, points):
    """At a centre of F^(3) the margin falls along the centre alone, as (1 - r)^3; all break at .71."""
    net = centre_net(mixture, 3.0)
    broken, every, starts = broken_by(net, ground(points, (0.75,)), CHEAP, 0)
    assert float(radius(net, points.x, points.y).upper.max()) < 0.75
    assert broken[ATTACKS.index("zero")].mean() < 0.1
    assert broken[ATTACKS.index("short")].mean() == 1
    assert every.mean() == 1
    assert starts == 2 + 3  # one towards each centre of the other class


def test_no_attack_breaks_below_the_exact_radius_and_strict_is_their_union(mixture, points):
    net = average_net(mixture)
    exact = radius(net, points.x, points.y)
    assert bool(exact.exact.all())
    radii = (0.45, 0.38)  # the critical one is 1/sqrt(6) = .408
    broken, every, _ = broken_by(net, ground(points, radii), CHEAP, 0)
    truth = (exact.lower <= torch.tensor(radii).double().unsqueeze(1)).numpy()
    assert not ((broken == 1) & ~truth).any()
    assert not ((every == 1) & ~truth).any()
    assert ((broken == 1).any(0) <= (every == 1)).all()
    assert (every == truth).mean() > 0.9
    few = broken[:, :, :10]
    union = np.maximum.reduce([few[ATTACKS.index(name)] for name in FOUR])
    assert (few[ATTACKS.index("auto")] == union).all()
    untried = broken[[ALL.index(name) for name in ON_FEW], :, 10:]
    assert (untried == UNTRIED).all()
    assert (broken[len(ATTACKS) :] == UNTRIED).all()  # tools are asked apart


@pytest.mark.slow
def test_radii_in_another_order_break_the_same(mixture, points):
    net = centre_net(mixture, 3.0)
    least = replace(CHEAP, steps=2, short=1, queries=1)
    up, all_up, _ = broken_by(net, ground(points, (0.6, 0.72)), least, 0)
    down, all_down, _ = broken_by(net, ground(points, (0.72, 0.6)), least, 0)
    assert (up == down[:, ::-1]).all()
    assert (all_up == all_down[::-1]).all()


def test_the_closed_form_proves_no_more_than_the_exact_radius(mixture, points, monkeypatch):
    net = centre_net(mixture, 3.0)
    exact = radius(net, points.x, points.y)
    monkeypatch.setattr("tacit.papers.min2024.overstated.grounds.SEARCHED", 1)
    lower = proved_radius(net, points.x, points.y, exact.upper)
    assert bool((lower <= exact.upper + 1e-9).all())
    assert float(lower.min()) > 0.3


def test_costs_are_looks_a_point():
    found = costs(LAPTOP, classes=10, starts=11)
    assert found["pgd20"] == 20
    assert found["targeted"] == 900
    assert found["auto"] == 100 + 900 + 900 + LAPTOP.queries
    assert (found["short"], found["long"]) == (20 * 11, 100 * 11)
    assert set(found) == set(ALL)


@pytest.mark.slow
def test_other_tools_break_nothing_below_the_exact_radius_and_leave_the_global_generator(
    mixture, points
):
    pytest.importorskip("foolbox")
    pytest.importorskip("art")
    net = average_net(mixture)
    exact = radius(net, points.x, points.y).lower
    at = ground(points, (1.1 * float(exact.max()), 0.9 * float(exact.min())))
    torch.manual_seed(0)
    found, again = (by_tools(net, at, slice(None), 0, tuple(TOOLS)) for _ in range(2))
    assert torch.equal(torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(0)))
    assert (found == again).all()
    assert (found[:, :, 10:] == UNTRIED).all()
    assert (found[:, 1, :10] == 0).all()
    assert (found[list(TOOLS).index("foolbox_fmn"), 0, :10] == 1).any()
    one = by_tools(net, at, slice(0, 1), 0, ("foolbox_pgd",))
    assert (one[1:] == UNTRIED).all()
    assert (one[0, 1] == UNTRIED).all()


# ---- what is judged, in worlds that are made up


def world(
    over: dict[str, list[float]],
    *,
    open_: float = 0.0,
    seeds: int = 6,
    points: int = 2000,
    ps: tuple[float, ...] = (1.0, 4.0),
) -> xr.Dataset:
    """Half of all points break, of which each attack leaves what it is told; `open_` are left unproved.

    Attacks that are not named leave nothing. The same on clusters and on images.
    """
    at = np.arange(points)
    strict = np.repeat((at < points // 2)[None], len(ps), 0).astype(np.int8)
    broken = np.repeat(strict[None], len(ALL), 0)
    for name, shares in over.items():
        for k, share in enumerate(shares):
            broken[ALL.index(name), k, at < share * points] = 0
    proved = np.repeat((at >= points // 2 + open_ * points)[None], len(ps), 0).astype(np.int8)

    def of_seeds(values, rows):
        return np.repeat(np.repeat(values[None, ..., None, :], rows, -2), seeds, 0)

    cost = np.array([costs(LAPTOP, 10, 11)[name] for name in ALL])
    return xr.Dataset(
        {
            "cluster_broken": (("seed", "attack", "p", "ball", "sample"), of_seeds(broken, 2)),
            "cluster_strict": (("seed", "p", "ball", "sample"), of_seeds(strict, 2)),
            "cluster_proved": (("seed", "p", "ball", "sample"), of_seeds(proved, 2)),
            "broken": (("seed", "attack", "p", "row", "point"), of_seeds(broken, 4)),
            "strict": (("seed", "p", "row", "point"), of_seeds(strict, 4)),
            "proved": (("seed", "p", "row", "sure"), of_seeds(proved, 4)),
            "cluster_cost": ("attack", cost),
            "image_cost": ("attack", cost),
        },
        coords={
            "p": list(ps),
            "attack": list(ALL),
            "seed": range(seeds),
            "ball_radius": ("ball", [np.nan, 0.75]),
        },
        attrs={"test_points": 10_000},
    )


def told(data):
    return verdicts(tuple(claims(data, LAPTOP, new_bench())))


GROWS = {name: [0.05, 0.3] for name in (*COMMON, *TOOLS, "margin", "targeted")}


def test_in_a_world_where_large_p_is_overstated_every_claim_says_so():
    data = world(GROWS)
    data["cluster_strict"][:] = 1  # everything breaks, and the zero start leaves all of it
    data["cluster_proved"][:] = 0
    data["cluster_broken"].loc[{"attack": "zero", "p": 4.0}] = 0
    found = told(data)
    checks = ("clusters.sound", "images.sound", "clusters.strict", "images.strict")
    assert {found.pop(id) for id in checks} == {"holds"}
    assert found.pop("clusters.grows.auto")
    # at p = 1 half of the points are untouched by every attack here: told in the next world
    for id in [id for id in found if id.startswith(("clusters.grows", "clusters.cheapest"))]:
        del found[id]
    assert set(found.values()) == {"as predicted"}, found


def test_in_a_world_where_small_p_is_overstated_every_claim_says_so():
    found = told(world({name: [0.3, 0.05] for name in GROWS}, open_=0.3))
    for id in ("clusters.sound", "images.sound", "clusters.strict", "images.strict"):
        assert found.pop(id) == "holds"
    for id in ("clusters.cheapest", "images.cheapest", "images.much"):
        assert found.pop(id) == "as predicted"
    assert set(found.values()) == {"not as predicted"}, found


def test_growth_on_clusters_turns_with_the_world():
    more, less = told(world(GROWS)), told(world({name: [0.3, 0.05] for name in GROWS}))
    for name in (*COMMON, *TOOLS):
        assert more[f"clusters.grows.{name}"] == "as predicted"
        assert less[f"clusters.grows.{name}"] == "not as predicted"


def test_each_p_counts_not_the_best_or_the_last():
    """Growth from p = 1 to 2 that p = 4 takes back; a gap at p = 1 alone; a zero start that sees at p = 3."""
    up_and_down = told(world({"apgd": [0.05, 0.3, 0.1]}, ps=(1.0, 2.0, 4.0)))
    assert up_and_down["images.order"] == "not as predicted"
    assert up_and_down["images.much"] == "as predicted"
    good = world(GROWS)
    assert {told(good)[f"{place}.gap"] for place in ("clusters", "images")} == {"as predicted"}
    for name in ("proved", "cluster_proved"):
        good[name].loc[{"p": 1.0}] = 0
    assert {told(good)[f"{place}.gap"] for place in ("clusters", "images")} == {"not as predicted"}
    seen = world({"zero": [1.0, 1.0]}, ps=(3.0, 4.0))
    seen["cluster_strict"][:] = 1
    assert told(seen)["clusters.zero"] == "as predicted"
    seen["cluster_broken"].loc[{"attack": "zero", "p": 3.0}] = 1
    assert told(seen)["clusters.zero"] == "not as predicted"


def test_nothing_overstated_is_not_much():
    assert told(world({}))["images.much"] == "not as predicted"


def test_the_cheapest_is_chosen_on_one_half_and_judged_on_the_other():
    data = world(GROWS)
    assert chosen(images_of(data)) == "short"
    assert told(data)["images.cheapest"] == "as predicted"
    later = data.copy(deep=True)  # the trainings that judge are overstated by what was chosen
    half = {
        "seed": slice(3, None), "attack": ALL.index("short"), "p": 1, "point": slice(0, 400)
    }  # fmt: skip
    later["broken"][half] = 0
    assert chosen(images_of(later)) == "short"
    assert told(later)["images.cheapest"] == "not as predicted"
    assert chosen(images_of(world(GROWS | {"short": [0.2, 0.0]}))) != "short"  # at each p
    none = world({name: [0.2, 0.2] for name in ATTACKS})
    assert chosen(clusters_of(none)) is None
    assert told(none)["clusters.cheapest"] == "not testable here"


def test_an_attack_that_leaves_everything_at_the_smallest_p_cannot_overstate_more():
    data = world({"square": [1.0, 1.0]})
    data["cluster_strict"][:] = 1
    found = {claim.id: claim for claim in claims(data, LAPTOP, new_bench())}
    assert found["clusters.grows.square"].verdict == "not testable here"
    assert found["clusters.grows.square"].expected == Expected(min=0.0)


def test_a_point_both_proved_and_broken_is_counted():
    data = world(GROWS)
    data["cluster_proved"][:] = 1
    assert told(data)["clusters.sound"] == "differs"


def test_a_tool_that_breaks_more_than_the_strict_attack_is_told():
    data = world(GROWS)
    data["broken"].loc[{"attack": "art_apgd"}] = 1
    found = told(data)
    assert (found["images.strict"], found["clusters.strict"]) == ("differs", "holds")


def test_a_tool_that_is_not_here_decides_nothing(monkeypatch):
    claims_of = "tacit.papers.min2024.overstated.claims.missing"
    monkeypatch.setattr(claims_of, lambda: dict.fromkeys(TOOLS, "a-tool"))
    data = world(GROWS)
    for place in ("broken", "cluster_broken"):
        data[place].loc[{"attack": list(TOOLS)}] = UNTRIED
    found = {claim.id: claim for claim in claims(data, LAPTOP, new_bench())}
    for id in ("images.grows.art_apgd", "clusters.grows.foolbox_pgd", "clusters.strict"):
        assert found[id].verdict == "not testable here"
        assert "a-tool is not installed" in found[id].reason
    assert found["images.grows.art_apgd"].expected == Expected(min=0.0)
    assert found["images.grows.apgd"].verdict == "as predicted"


def test_mnist_beside_them_is_judged_by_itself_and_told_where_it_is_missing(monkeypatch):
    own = replace(LAPTOP, mnist=True).on_mnist()
    assert (own.dataset, own.l2, own.mnist) == ("mnist", LAPTOP.mnist_l2, False)
    data = world(GROWS)
    both = data.merge(prefixed(data, ("p", "attack"))).assign_attrs(mnist_test_points=10_000)
    back = of_mnist(both)
    assert set(back.data_vars) == set(data.data_vars)
    assert back.broken.dims == data.broken.dims
    found = verdicts(tuple(image_claims(back, own, new_bench(), "mnist")))
    assert found["mnist.grows.apgd"] == found["mnist.much"] == "as predicted"
    regimes = [
        next(image_claims(back, replace(own, mnist_train=n), new_bench(), "mnist")).regime
        for n in (5000, 50_000)
    ]
    assert regimes[0].startswith("shortened: 5000 of MNIST's")
    assert "MNIST's training images" not in regimes[1]
    place = "tacit.papers.min2024.overstated.exhibit.mnist_missing"
    monkeypatch.setattr(place, lambda: "MNIST is not here")
    said = []
    (claim,), more = beside(replace(LAPTOP, mnist=True), new_bench(said=said), ())
    assert (claim.verdict, more) == ("not testable here", None)
    assert claim.expected == Expected(min=0.02)
    assert claim.reason in said[0]


def test_mnist_is_missed_where_no_folder_has_its_images(monkeypatch, tmp_path):
    for name in ("TACIT_DATA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "empty"))
    (tmp_path / "empty").mkdir()
    assert "tacit data fetch mnist" in mnist_missing()


def test_untried_points_are_left_out():
    data = world({"square": [0.5, 0.5]})
    assert images_of(data).values("square").shape == (2, 6, 2000)
    data["broken"].loc[{"attack": "square"}] = data.broken.sel(attack="square").where(
        np.arange(2000) < 100, UNTRIED
    )
    found = images_of(data).values("square")
    assert found.shape == (2, 6, 100)
    assert found.mean() == 1
    data["broken"][{"seed": 0, "attack": ALL.index("square"), "point": 3}] = UNTRIED
    assert images_of(data).values("square").shape == (2, 6, 99)  # tried by the nets of all seeds


# ---- settings


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"p": (1.0,)}, "p=1: give at least two values"),
        ({"D": 50}, "D=50: give a square number, as in --set D=49"),
        ({"repeats": 1}, "repeats=1: it is at least 2"),
        ({"few": 600}, "points=120: it is at least 600"),
        ({"alpha": 0.5}, "alpha=0.5: it is at most 0.3"),
        ({"l2": (0.5, 0.5)}, "l2=0.5,0.5: each value once"),
        ({"queries": 0}, "queries=0: it is a positive number"),
        ({"K1": 10}, "K1=10 with K=10"),
        ({"mnist": True, "mnist_few": 600}, "points=60: it is at least 600"),
        ({"mnist": True, "dataset": "mnist"}, "one ground twice"),
    ],
)
def test_settings_that_are_refused(change, says):
    with pytest.raises(CallError) as error:
        replace(LAPTOP, **change)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_the_nets_at_paper_scale_are_the_papers():
    paper = EXHIBITS[0].scales["paper"]
    own = paper.on_mnist()
    assert (own.dataset, own.width, own.epochs, own.batch) == ("mnist", 500, 51, 1000)
    assert isinstance(SMOKE, Overstated)


def test_points_of_their_own_all_count_and_shared_ones_count_once():
    """0 of m n fresh points say as much as 0 of so many in one go; 0 of n shared ones no more than n points."""
    none = np.zeros((5, 200))
    fresh, shared = crossed(none, ends=(0.0, 1.0), fresh=True), crossed(none, ends=(0.0, 1.0))
    assert fresh.high == pytest.approx(crossed(np.zeros((2, 1000)), ends=(0.0, 1.0)).high)
    assert shared.high == pytest.approx(crossed(np.zeros((2, 200)), ends=(0.0, 1.0)).high)
    assert fresh.n == shared.n == 1000
