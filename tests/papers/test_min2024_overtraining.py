"""`min2024.overtraining`: nets by epoch, indicators by hand, and its claims in worlds that are made up."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from benches import new_bench, verdicts
from tacit.errors import CallError
from tacit.lab import Expected
from tacit.papers.min2024.images.nets import pictures_of
from tacit.papers.min2024.images.training import trained_nets
from tacit.papers.min2024.overtraining.claims import (
    best_epoch,
    choosing,
    claims,
    indicator,
    judging,
    no_mnist,
    regret,
    stopped,
)
from tacit.papers.min2024.overtraining.exhibit import run
from tacit.papers.min2024.overtraining.looks import INDICATORS, nets_by_epoch, without_attack
from tacit.papers.min2024.overtraining.settings import EXHIBITS

SMOKE, LAPTOP = EXHIBITS[0].scales["smoke"], EXHIBITS[0].scales["laptop"]


@pytest.fixture(scope="module")
def pictures():
    return pictures_of("digits", 10)


@pytest.fixture(scope="module")
def nets(pictures):
    return nets_by_epoch(SMOKE, new_bench(), pictures, 0)


def test_a_net_on_its_way_is_what_a_shorter_training_ends_with(
    nets, pictures, tmp_path, monkeypatch
):
    monkeypatch.setenv("TACIT_MODELS", str(tmp_path))
    assert set(nets) == {(p, epoch) for p in SMOKE.p for epoch in SMOKE.at}
    shorter = replace(SMOKE, epochs=4, at=(1, 2, 4))
    ends, _ = trained_nets(shorter, new_bench(), pictures, own_order=True)
    for p in SMOKE.p:
        torch.testing.assert_close(nets[p, 4].w, ends[p, 0].w, rtol=1e-4, atol=1e-6)
        assert not torch.equal(nets[p, 2].w, nets[p, 4].w)


def test_indicators_by_autograd_and_by_hand(nets, pictures):
    net = nets[4.0, 6].double()
    x, y = pictures.test_x[:12].double(), pictures.test_y[:12]
    found = without_attack(net, x, y)
    leaf = x.clone().requires_grad_(True)
    z = net(leaf)
    own = z.gather(1, y[:, None]).squeeze(1)
    apart = own - z.masked_fill(torch.nn.functional.one_hot(y, 10).bool(), -torch.inf).amax(1)
    (steep,) = torch.autograd.grad(apart.sum(), leaf)
    z, apart = z.detach(), apart.detach()
    size = sum(
        float(net.v[k, j].abs() * net.w[j].norm()) for k in range(10) for j in range(len(net.w))
    )
    assert found["distance"] == pytest.approx(float((apart / steep.norm(dim=1)).median()), rel=1e-6)
    assert found["margin"] == pytest.approx(float(apart.median()) / size, rel=1e-6)
    assert found["size"] == pytest.approx(size, rel=1e-6)
    assert found["accuracy"] == float((apart > 0).double().mean())
    assert found["loss"] == pytest.approx(float(torch.nn.functional.cross_entropy(z, y)), rel=1e-6)


# ---- what is judged, in worlds that are made up

EPOCHS = [10, 20, 40]


def world(
    curves: list[list[float]], *, good: str = "margin", seeds: int = 8, points: int = 1000,
    proved: tuple[float, ...] = (0.5, 0.5, 0.2),
) -> xr.Dataset:  # fmt: skip
    """p = 1 and 4 with these robust accuracies over epochs; the good indicator is best where they are."""
    shares = np.array(curves)
    kept = np.arange(points) < shares[..., None] * points
    kept = np.repeat(np.repeat(kept[None, :, :, None], 2, 3), seeds, 0)
    sure = np.arange(points) < np.array(proved)[:, None] * points
    sure = np.repeat(np.repeat(sure[None, None], 2, 1), seeds, 0)
    flat = np.repeat(shares[None], seeds, 0)
    told = {
        name: -flat if name == good else flat for name in INDICATORS
    }  # of the others the worst epoch
    signs = {name: 1 if INDICATORS[name] == "least" else -1 for name in INDICATORS}
    one = ("seed", "p", "epoch")
    return xr.Dataset(
        {
            "kept": ((*one, "row", "point"), kept.astype(np.int8)),
            "proved": ((*one, "sure"), sure.astype(np.int8)),
            "left": ((*one, "sure"), np.ones(sure.shape, np.int8)),
            **{name: (one, signs[name] * told[name]) for name in INDICATORS},
        },
        coords={"p": [1.0, 4.0], "epoch": EPOCHS, "row": ["linf", "l2"], "seed": range(seeds)},
        attrs={"test_points": 100_000},
    )


def judged(data):
    return verdicts(tuple(claims(data, LAPTOP, new_bench())))


def test_in_a_world_where_large_p_is_overtrained_every_claim_says_so():
    data = world([[0.3, 0.3, 0.3], [0.4, 0.6, 0.45]])
    found = judged(data)
    assert found.pop("sound") == "holds"
    assert found.pop("keeps") in ("as predicted", "undecided")  # nothing lost, on 1,000 points
    assert set(found.values()) == {"as predicted"}, found
    assert indicator(choosing(data)) == "margin"


def test_in_a_world_where_small_p_is_overtrained_every_claim_says_so():
    data = world([[0.4, 0.6, 0.3], [0.3, 0.4, 0.6]], proved=(0.2, 0.2, 0.6))
    found = judged(data)
    assert found.pop("sound") == "holds"
    assert found.pop("indicator") == "as predicted"
    assert set(found.values()) == {"not as predicted"}, found


def test_nothing_lost_at_small_p_is_seen_on_many_points():
    data = world([[0.3, 0.3, 0.3], [0.4, 0.6, 0.45]], points=4000)
    assert judged(data)["keeps"] == "as predicted"


def test_an_indicator_that_fails_on_the_judging_trainings_is_told():
    data = world([[0.4, 0.6, 0.3], [0.4, 0.6, 0.3]])
    data["margin"][4:] = -data.margin[4:]
    assert indicator(choosing(data)) == "margin"
    assert judged(data)["indicator"] == "not as predicted"


def test_the_best_epoch_is_chosen_on_other_trainings():
    data = world([[0.3, 0.5, 0.4], [0.3, 0.5, 0.4]])
    data["kept"][4:, :, 0] = 1  # in the trainings that judge the first epoch is best
    assert best_epoch(choosing(data), 4.0) == 20
    assert best_epoch(judging(data), 4.0) == 10
    assert judged(data)["loses"] == "as predicted"


def test_stopping_where_it_is_best_loses_nothing():
    data = world([[0.3, 0.5, 0.4], [0.2, 0.3, 0.1]])
    assert stopped(data, "margin").values.tolist() == [[20, 20]] * 8
    assert float(abs(regret(data, "margin")).max()) == 0
    assert regret(data, "loss").mean(("seed", "point")).values == pytest.approx([0.2, 0.2])


def test_a_point_both_proved_and_broken_is_counted():
    data = world([[0.3, 0.3, 0.3], [0.4, 0.6, 0.45]])
    data["left"][0, 0, 0, 0] = 0
    assert judged(data)["sound"] == "differs"


def test_mnist_has_settings_claims_and_a_regime_of_its_own():
    own = replace(SMOKE, mnist=True).on_mnist()
    assert (own.dataset, own.at, own.epochs) == ("mnist", SMOKE.mnist_at, max(SMOKE.mnist_at))
    data = world([[0.3, 0.3, 0.3], [0.4, 0.6, 0.45]])
    found = {claim.id: claim for claim in claims(data, own, new_bench(), "mnist.")}
    assert found["mnist.loses"].verdict == "as predicted"
    assert found["mnist.loses"].regime.startswith("shortened: 2000 of MNIST")
    whole = replace(own, mnist_train=50_000)
    assert "of MNIST's" not in next(claims(data, whole, new_bench(), "mnist.")).regime
    missing = no_mnist("MNIST is not here", new_bench())
    assert (missing.id, missing.expected) == ("mnist.loses", Expected(min=0.0))


@pytest.mark.slow
def test_mnist_beside_digits_is_told_where_it_is_missing(monkeypatch):
    monkeypatch.setattr(
        "tacit.papers.min2024.overtraining.exhibit.mnist_missing", lambda: "MNIST is not here"
    )
    said = []
    outcome = run(replace(SMOKE, mnist=True), new_bench(scale="smoke", said=said))
    last = outcome.claims[-1]
    assert (last.id, last.verdict) == ("mnist.loses", "not testable here")
    assert any("MNIST is not here" in line for line in said)
    assert "mnist_kept" not in outcome.data


# ---- settings


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"p": (4.0,)}, "p=4: give at least two values"),
        ({"epochs": 300}, "--set epochs=320"),
        ({"at": (160, 320)}, "at=2: it is at least 3"),
        ({"at": (5, 5, 320)}, "at=5,5,320: each value once"),
        ({"repeats": 3}, "repeats=3: it is at least 4"),
        ({"certified": 300}, "points=200: it is at least 300"),
        ({"proof": 0.0}, "proof=0.0: it is a positive number"),
        ({"mnist_repeats": 3}, "repeats=3: it is at least 4"),
        ({"dataset": "mnist"}, "--set mnist=false"),
    ],
)
def test_settings_that_are_refused(change, says):
    with pytest.raises(CallError) as error:
        replace(LAPTOP, **change)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_all_test_points_attacked_leave_none_for_the_indicators():
    with pytest.raises(CallError, match=r"points=5000: digits has \d+ test points; give fewer"):
        run(replace(SMOKE, points=5000), new_bench(scale="smoke"))
