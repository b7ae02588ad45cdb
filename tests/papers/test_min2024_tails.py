"""min2024.tails: its integrals against closed forms, quadrature and counts; its claims in made-up worlds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.integrate import dblquad, quad
from scipy.special import log_ndtr, logsumexp
from scipy.stats import chi2, norm

from benches import new_bench, verdicts
from tacit.certify import radius
from tacit.data import cluster_mixture, orthogonal_centres
from tacit.errors import CallError
from tacit.nets import average_net, centre_net
from tacit.papers.min2024.tails import integrals
from tacit.papers.min2024.tails.bounds import NAMES, Printed
from tacit.papers.min2024.tails.claims import claims, ratio_told
from tacit.papers.min2024.tails.exhibit import ENDS, SAMPLED, integrated
from tacit.papers.min2024.tails.integrals import log_failure, log_failure_average, others, table
from tacit.papers.min2024.tails.sampling import sampled
from tacit.papers.min2024.tails.settings import Tails

SMALL = Tails(K=(2, 4), K1=(1, 2), bound=(0.1, 1e-6, 1e-12), p=(1.0, 3.0), n=100, counted=2000)


def test_the_table_of_several_coordinates_is_the_chi_bar_law_far_into_the_tail():
    at = np.array([0.5, 3.0, 20.0, 35.0])
    found = others(2.0, 4, 80.0)(at)
    laws = [math.log(math.comb(4, j) / 16) + chi2.logsf(at**2, j) for j in range(1, 5)]
    np.testing.assert_allclose(found, logsumexp(laws, axis=0), atol=1e-6)


def test_at_p_1_the_table_of_two_coordinates_is_a_sum_of_two_half_normals():
    a, m = 1.3, 2.0
    law = np.exp(table(1.0, 2, m, 5.0, tail=False)(a))
    both = dblquad(
        lambda t, u: norm.pdf(t) * norm.pdf(u - m), 0, a, 0, lambda u: a - u, epsabs=1e-10
    )[0]
    one = norm.cdf(-m) * norm.cdf(a) + 0.5 * (norm.cdf(a - m) - norm.cdf(-m))
    assert math.isclose(law, both + one, rel_tol=1e-6)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_finer_tables_and_more_nodes_give_the_same_far_tails(
    p: float, monkeypatch: pytest.MonkeyPatch
):
    coarse = [log_failure(p, 3, 2, 40.0), log_failure(p, 1, 3, 15.0)]
    for name, value in (("STEP", 0.05), ("NODES", 160)):
        monkeypatch.setattr(integrals, name, value)
    others.cache_clear()
    fine = [log_failure(p, 3, 2, 40.0), log_failure(p, 1, 3, 15.0)]
    others.cache_clear()
    np.testing.assert_allclose(coarse, fine, atol=2e-3)


def test_with_one_cluster_on_each_side_every_classifier_is_one_rule():
    """u <= max(0, v): a quadrature of its own."""
    m = 3.0
    wedge = quad(lambda v: norm.pdf(v) * norm.cdf(max(0, v) - m), -9, 12, points=[0], epsabs=1e-12)[
        0
    ]
    for found in (
        log_failure_average(1, 1, m),
        *(log_failure(p, 1, 1, m) for p in (1.0, 2.0, 3.0)),
    ):
        assert math.isclose(math.exp(found), wedge, rel_tol=1e-5)
    # so far out that one half-space is all: Q(m/sqrt(2))
    assert math.isclose(log_failure(3.0, 1, 1, 60.0), log_ndtr(-60 / math.sqrt(2)), rel_tol=1e-6)


def test_integrals_are_the_shares_of_points_that_exact_radii_break_or_keep():
    K, K1, m, n = 5, 2, 3.0, 20_000
    mixture = cluster_mixture(orthogonal_centres(K, K), K1, 1 / m)
    points = mixture.sample(n, torch.Generator().manual_seed(0))

    def share(one, *more) -> float:
        return (
            K1 * math.exp(one(K1, K - K1, *more)) + (K - K1) * math.exp(one(K - K1, K1, *more))
        ) / K

    squares = radius(centre_net(mixture, 2.0), points.x, points.y, up_to=0).upper
    averages = radius(average_net(mixture), points.x, points.y).lower
    cubes = centre_net(mixture, 3.0)(points.x) * points.y
    for events, expected in (
        (cubes <= 0, share(lambda a, b: log_failure(3.0, a, b, m))),
        (averages <= 0.2, share(lambda a, b: log_failure_average(a, b, m, 0.2 * m))),
        (squares <= 0.3, share(lambda a, b: log_failure(2.0, a, b, m, 0.3 * m))),
        (squares > 0.9, share(lambda a, b: log_failure(2.0, a, b, m, 0.9 * m, True))),
    ):
        found = float(events.double().mean())
        assert abs(found - expected) < 5 * math.sqrt(expected / n), (found, expected)


@pytest.mark.parametrize(("delta", "kept"), [(math.sqrt(2), False), (1.0, False), (1.0, True)])
def test_importance_sampling_gives_probabilities_that_no_count_reaches(delta: float, kept: bool):
    """Where both are known: clean errors, and one cluster on each side."""
    K, K1, m = (4, 2, 14.0) if delta > 1.4 else (2, 1, 14.0)
    scale, share = sampled(3.0, K, K1, m, delta, kept, 4000, torch.Generator().manual_seed(1))
    at = (math.sqrt(2) + (delta if kept else -delta)) / 2 * m
    expected = log_failure(3.0, K1, K - K1, m, at if delta < 1.4 else 0.0, kept)
    assert expected < -20
    assert abs(scale + math.log(share.value) - expected) < 0.15
    assert share.low < math.exp(expected - scale) * 1.05
    assert share.high > math.exp(expected - scale) / 1.05


def test_the_noise_is_that_at_which_the_bound_has_its_value():
    printed = Printed(10, 0.5, 1.0)
    for name in NAMES:
        a, c = printed.parts(name)
        assert math.isclose(a * math.exp(-0.5 * c * printed.m(name, 1e-9) ** 2), 1e-9)
    assert [printed.exponents(name, 3.0, 6) for name in NAMES] == pytest.approx([4, 50, 50, 1, 320])
    # below p = 2 many centres rise together: K^2 q/(1+q), q = 6^(1-2/p)
    assert printed.exponents("prop1.Fp", 1.0, 6) == pytest.approx(100 / 7)


# ---- what is judged, in worlds that are made up


def world(lift: float = 0.0, bend: float = 1.0, noise: float = 0.05) -> xr.Dataset:
    """The integrals themselves, e^lift as likely and with exponents `bend` times as large."""
    rows = [integrated(SMALL, K, K1) for K, K1 in zip(SMALL.K, SMALL.K1, strict=True)]
    data = bend * xr.concat(rows, "K").assign_coords(K=list(SMALL.K)) + lift
    clean = data["prop1.Fp"].sel(p=[3.0]).rename(p="power").transpose("K", "power", "bound")
    middle = xr.concat(
        [clean, *(data[name].expand_dims(power=[3.0]) for name in SAMPLED[1:])], "event"
    ).assign_coords(event=list(SAMPLED))
    ends = xr.DataArray([0.0, -noise, noise], dims="end", coords={"end": ENDS})
    counted = (1 + ends).expand_dims(K=list(SMALL.K), what=["prop1.F"])
    return data.assign(clean=clean, sampled=middle + ends, counted=counted)


def judged(data: xr.Dataset) -> dict[str, str]:
    return verdicts(tuple(claims(data, SMALL, new_bench(scale="laptop"))))


def test_in_the_true_world_every_bound_holds_and_every_exponent_is_the_nearest_failures():
    assert set(judged(world()).values()) == {"holds", "as predicted"}


def test_a_bound_that_is_too_small_or_falls_otherwise_is_noticed():
    lifted = judged(world(lift=math.log(1e60)))
    for name in ("prop1.F", "prop1.Fp", "thm1.Fp", "thm1.Fp.p3", "thm3.F", "thm3.Fp", "thm3.Fp.p3"):
        assert lifted[name] == "differs", name
        assert lifted.get(f"{name}.exponent", "as predicted") == "as predicted"
    bent = judged(world(bend=1.2))
    for name in NAMES:
        assert bent[name] == "holds"
        assert bent[f"{name}.exponent"] == "not as predicted"


def test_the_worst_bound_is_the_one_that_is_told():
    """One integral and one sample that are three times what the bound allows."""
    data = world(noise=1e-4)
    data["thm1.Fp"][1, 0] = math.log(3 * float(data.bound[0]))
    at = {"event": "thm3.Fp", "power": 3.0, "K": 4, "bound": data.bound[0]}
    data.sampled.loc[at] = math.log(3 * float(data.bound[0])) + np.array([0.0, -1e-4, 1e-4])
    made = {c.id: c for c in claims(data, SMALL, new_bench(scale="laptop"))}
    for id in ("thm1.Fp", "thm3.Fp.p3"):
        assert made[id].measured == pytest.approx(math.log10(3))
        assert made[id].verdict == "differs"


def test_one_exponent_that_is_off_is_enough():
    data = world()
    data["prop1.F"][1] *= 1.2
    assert judged(data)["prop1.F.exponent"] == "not as predicted"
    assert ratio_told(np.array([2.0, 50.0])) == "2 to 50"
    assert ratio_told(np.array([4.0, 4.0])) == "4"


def test_a_sample_that_straddles_the_bound_decides_nothing_and_a_check_can_fail():
    wide = world(noise=300.0)
    assert judged(wide)["thm3.Fp.p3"] == "undecided"
    wrong = world()
    wrong["clean"] = wrong.clean + 1.0
    wrong["counted"] = wrong.counted + 1.0
    assert judged(wrong)["check.sampled"] == judged(wrong)["check.counted"] == "differs"


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"bound": (2.0, 0.1)}, "bound=2.0: it is at most 1 (a bound above 1 says nothing)"),
        ({"bound": (0.1,)}, "two or more"),
        ({"sampled": (2.0,)}, "p = 2 is integrated"),
        ({"rho": 1.5}, "(1 - rho)/sqrt(K)"),
        ({"delta": 0.0}, "longer tables"),
        ({"K": (20,), "K1": (10,)}, "K=20"),
        ({"n": 10}, "an interval needs points"),
    ],
)
def test_refusals(settings: dict, line: str):
    with pytest.raises(CallError) as error:
        Tails(**settings)
    assert line in str(error.value)
    assert "\n" not in str(error.value)
