"""allenzhu2020: the finite setting, its trainings through the store, and what is read off nets."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from benches import new_bench
from tacit.attack import allenzhu2020_dense, pgd
from tacit.errors import CallError
from tacit.lab import Bench, Expected
from tacit.measure.purification.mixture import coordinates
from tacit.nets import SymmetricNet
from tacit.papers.allenzhu2020._shared import nets as shared
from tacit.papers.allenzhu2020._shared.claims import holds_in, share_of
from tacit.papers.allenzhu2020._shared.measured import dense_part, held, objective, strongest
from tacit.papers.allenzhu2020._shared.nets import (
    batches_of,
    fresh_points,
    stages_of,
    start_of,
    trained,
    world,
)
from tacit.papers.allenzhu2020._shared.robust import awake_part, withstood
from tacit.papers.allenzhu2020._shared.settings import (
    SMOKE,
    VARIANTS,
    Finite,
    Leg,
    WithLight,
    check_variants,
    varied,
)
from tacit.train import train_symmetric

SMALL = Finite(**{**SMOKE, "clean_steps": (20, 20), "pure_steps": 15})


def test_the_defaults_are_the_finite_setting() -> None:
    config = Finite()
    assert (config.d, config.k, config.m, config.tau, config.margin) == (200, 6.0, 2000, 0.35, 1.0)
    assert sum(config.clean_steps) == 1000
    assert config.purified()[0] == config.control[0] == config.clean[0]
    assert sum(sum(leg.steps) for leg in config.longer(10)) == 10_000
    light = WithLight().light
    assert (light.m, light.pure_steps, light.d) == (1000, 600, 200)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"clean_steps": (10,)}, "pair up"),
        ({"tau": 0.0}, "positive"),
        ({"spread": 0.5}, "at least 1"),
        ({"sigma_x": -1.0}, "at least 0"),
    ],
)
def test_what_the_setting_refuses(changed: dict, said: str) -> None:
    with pytest.raises(CallError, match=said):
        Finite(**changed)
    with pytest.raises(CallError, match="some of"):
        check_variants(("nosuch",))
    with pytest.raises(CallError):
        Leg((1, 2), (0.1,))


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_a_world_of_its_own(bench: Bench, name: str) -> None:
    config = varied(SMALL, name)
    model, samples = world(config, bench, 3), fresh_points(config, bench, 3, 200)
    assert (model.d, model.D) == (40, config.features)
    assert samples.x.shape == (200, 40)
    along = samples.z.double() @ model.w_star
    assert bool((along.sign() == samples.y).logical_or(along == 0).all())
    assert bool((along.abs() >= config.margin - 1e-6).all())
    assert (model.spike is not None) == (name == "spikes")
    if name == "unequal":
        assert float(model.w_star.abs().min()) >= 0.5
        assert float(model.w_star.abs().max()) <= 1.5
    else:
        assert bool((model.w_star.abs() == 1).all())


def test_courses_share_what_they_share(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clean once, and the store gives the same bits to whoever asks later."""
    calls: list[tuple] = []
    real = shared.last_legs

    def counted(config, bench, known, todo, checkpoint):
        calls.extend(course for course, _, _ in todo)
        return real(config, bench, known, todo, checkpoint)

    monkeypatch.setattr(shared, "last_legs", counted)
    courses = {"clean": SMALL.clean, "pure": SMALL.purified(), "control": SMALL.control}
    found = trained(SMALL, bench, [0, 1], courses)
    assert sorted(len(course) for course in calls) == [1, 1, 2, 2, 2, 2]
    again = trained(SMALL, new_bench(), [1], {"pure": SMALL.purified()})
    assert len(calls) == 6
    assert torch.equal(again["pure", 1].w, found["pure", 1].w)
    other = trained(SMALL, bench, [1], {"clean": SMALL.clean}, run=1)
    assert len(calls) == 7
    assert not torch.equal(other["clean", 1].w, found["clean", 1].w)
    trained(replace(SMALL, tau=0.1), bench, [1], {"clean": SMALL.clean})  # tau is the leg's
    assert len(calls) == 7


def test_a_course_is_train_symmetric_leg_by_leg(bench: Bench) -> None:
    found = trained(SMALL, bench, [2], {"control": SMALL.control})["control", 2]
    first, second = SMALL.control
    net = start_of(SMALL, bench, 2, 0, first)
    for place, leg in enumerate((first, second)):
        batches = batches_of(SMALL, bench, 2, 0, place)
        net = train_symmetric(net, batches, stages_of(SMALL, leg)).net
    torch.testing.assert_close(found.w, net.w, rtol=0, atol=1e-5)


def test_pure_features_are_diagonal_in_the_dictionary(bench: Bench) -> None:
    model = world(SMALL, bench, 0)
    start = start_of(SMALL, bench, 0, 0, SMALL.from_pure[0])
    table = coordinates(start.w, model.M) * model.w_star.sign()
    torch.testing.assert_close(table, torch.eye(40, dtype=torch.float64), atol=1e-6, rtol=0)
    assert dense_part(SMALL, bench, 0, start)[0] == pytest.approx(0, abs=1e-7)


def pure_net(config: Finite, bench: Bench) -> SymmetricNet:
    return start_of(config, bench, 0, 0, config.from_pure[0])


def test_what_is_withstood_is_what_attacks_leave(bench: Bench) -> None:
    net, model = pure_net(SMALL, bench), world(SMALL, bench, 0)
    samples = fresh_points(SMALL, bench, 0, 60)
    seen = withstood(net, model, samples, 0.6, seed=0)
    dense = allenzhu2020_dense(model.M, model.w_star).float()
    x, y = samples.x, samples.y
    assert torch.equal(seen["clean"], y * net(x) > 0)
    assert torch.equal(
        seen["universal"], seen["clean"] & (y * net(x - 0.6 * y[:, None] * dense) > 0)
    )
    whole = ~pgd(net, x, y, [0.6], steps=20, seed=0).broken[0]
    assert bool((seen["worst"] <= (seen["universal"] & seen["fgm"])).all())
    assert (
        abs(float(seen["worst"].double().mean() - (whole & seen["universal"]).double().mean()))
        < 0.1
    )


@pytest.mark.parametrize("norm", [2, np.inf])
def test_neurons_left_out_of_an_attack_are_asleep(bench: Bench, norm: float) -> None:
    start = pure_net(SMALL, bench)
    shrunk = start.w * torch.linspace(0, 1, 40).unsqueeze(1)
    net = SymmetricNet(shrunk, start.b, start.sigma)
    samples = fresh_points(SMALL, bench, 0, 50)
    radius = 0.2 if norm == 2 else 0.02
    part = awake_part(net, samples.x, radius, norm)
    assert 0 < len(part.w) < 40
    way = torch.randn(50, 40, generator=torch.Generator().manual_seed(0))
    way = way / way.norm(dim=1, keepdim=True) if norm == 2 else way.sign()
    moved = samples.x + radius * way
    torch.testing.assert_close(part(moved), net(moved), rtol=1e-5, atol=1e-6)


def test_the_objective_is_the_printed_one(bench: Bench) -> None:
    net, samples = pure_net(SMALL, bench), fresh_points(SMALL, bench, 0, 30)
    y, f = samples.y.double(), net(samples.x).double()
    wanted = torch.log1p(torch.exp(-y * f)).mean() + SMALL.decay * 40 * (1 / 2 + 1 / 3)
    assert objective(SMALL, net, samples) == pytest.approx(float(wanted), rel=1e-5)


def test_the_strongest_are_of_different_features(bench: Bench) -> None:
    model, net = world(SMALL, bench, 0), pure_net(SMALL, bench)
    twice = SymmetricNet(torch.cat([net.w, net.w]), torch.cat([net.b, net.b]), net.sigma)
    chosen = strongest(model, twice, twice, 5).tolist()
    assert len({i % 40 for i in chosen}) == 5


def test_held_has_a_row_for_each_net(bench: Bench) -> None:
    data = held(SMALL, bench, [0, 1], {"clean": SMALL.clean, "pure": SMALL.purified()}, 30)
    assert data.worst.dims == ("course", "seed", "point")
    assert data.worst.shape == (2, 2, 30)
    assert bool((data.worst <= data.clean).all())


def test_few_trainings_are_judged_by_their_mean_and_many_one_by_one(bench: Bench) -> None:
    judge = bench.claims("here", source="words", bar="ours: a bar", regime="outside: made up")
    right = xr.DataArray(np.ones((3, 500), dtype=np.int8), dims=("few", "point"))
    assert holds_in(judge, "mean", "points", Expected(min=0.9), right).verdict == "holds"
    many = xr.DataArray(np.ones((6, 500), dtype=np.int8), dims=("seed", "point"))
    assert holds_in(judge, "each", "points", Expected(min=0.9), many).verdict == "holds"
    many[2, :100] = 0
    assert holds_in(judge, "each", "points", Expected(min=0.9), many).verdict == "differs"
    assert share_of(many).value == pytest.approx(1 - 100 / 3000)
