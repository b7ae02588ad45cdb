"""min2024.fig2_sgd, fig5_sgd: the released loop and attack, beside the flow and a plain loop of torch's own."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from benches import new_bench, verdicts
from tacit.attack import pgd
from tacit.data import min2024_mixture
from tacit.errors import CallError
from tacit.measure.distance.bundled import bundled
from tacit.nets import TwoLayerNet, centre_net
from tacit.papers.min2024.fig2.exhibit import curves, draw_one
from tacit.papers.min2024.fig2_sgd import exhibit as sgd
from tacit.papers.min2024.fig2_sgd.settings import EXHIBITS, Released

SMALL = Released(
    D=12, K=4, K1=2, h=24, n=200, alpha=(0.02, 0.05), points=10, repeats=3, epochs=400, attack_steps=40,
    radius=(0.0, 0.3, 0.55, 0.75),
)  # fmt: skip


def world(config: Released = SMALL, **changes) -> xr.Dataset:
    """Made-up measurements that agree with every claim: three nets of each alpha and p, ten points each."""
    alpha, seed, p = list(config.alpha), [0, 1, 2], [1.0, 3.0]
    jitter = xr.DataArray([-1e-4, 0.0, 1e-4], dims="seed", coords={"seed": seed})
    noise = jitter + xr.DataArray([0.0, 1e-3], dims="alpha", coords={"alpha": alpha})
    edge = xr.DataArray([1 / math.sqrt(config.K), math.sqrt(0.5)], dims="p", coords={"p": p})
    radii = edge * (1 + noise) + xr.DataArray(np.zeros(10), dims="point")
    radius = xr.DataArray(list(config.radius), dims="radius")
    kept = (radii > radius).mean("point")
    ends = xr.DataArray([0.0, 1e-5], dims="end", coords={"end": ["lower", "upper"]})
    data = xr.Dataset(
        {
            "distance": 0.05 + 3 * noise + 0 * edge + ends,
            "flow_distance": 0.05 + 2 * noise + 0 * edge + ends,
            "within": 1 + 0 * noise + 0 * edge + xr.DataArray([0.0, 0.0], dims="sign"),
            "least": 0.95 + noise + 0 * edge,
            "merge_error": 1e-5 + 0 * noise + 0 * edge,
            **dict.fromkeys(("lower", "upper"), radii),
            **dict.fromkeys(("flow_lower", "flow_upper"), radii * (1 + jitter)),
            "zero": xr.where(kept.p == 3, (radius < 1) + 0 * kept, kept),
        },
        coords={"alpha": alpha, "seed": seed, "p": p, "radius": list(config.radius)},
        attrs={"shown": 0.05},
    )
    data = data.assign({name: change(data[name]) for name, change in changes.items()})
    return data.assign(curves(data.transpose("alpha", "seed", "p", ...), config))


def judged(data: xr.Dataset, config: Released = SMALL) -> dict[str, str]:
    return verdicts(tuple(sgd.claims(data, config, new_bench())))


def test_the_paper_scale_is_the_released_config():
    paper = EXHIBITS[0].scales["paper"]
    assert (paper.steps, paper.batch, paper.step, paper.init) == (80_200, 100, 0.2, 1e-7)
    assert len(paper.alpha) * len(paper.p) * paper.repeats == 30
    assert paper.regime.startswith("inside")
    assert replace(paper, epochs=10).regime.startswith("shortened: epochs = 10; 2,000 steps")
    assert paper.regime.endswith("; 1 of the captions' 10 repeats of an alpha")


TWICE = replace(SMALL, D=24, K=20, K1=8, h=40)


def test_figure_5_is_the_same_loop_with_twice_the_subclasses():
    """The settings of Appendix A.2, and otherwise those of Figure 2."""
    two, five = (exhibit.scales for exhibit in EXHIBITS)
    assert (five["paper"].K, five["paper"].K1) == (five["laptop"].K, five["laptop"].K1) == (20, 8)
    assert replace(five["paper"], K=10, K1=6) == two["paper"]
    assert five["paper"].regime.startswith("inside: the released config, 80,200 steps")
    assert {exhibit.code for exhibit in EXHIBITS} == {"tacit.papers.min2024.fig2_sgd.exhibit"}
    for config in five.values():  # smoke, too, is judged as Figure 5
        config = replace(config, alpha=SMALL.alpha)
        made = tuple(sgd.claims(world(config), config, new_bench()))
        assert {c.where.split(" (")[0] for c in made if c.source != "check"} == {
            "Appendix A.2, Figure 5"
        }
        assert "earlier" in verdicts(made)


def test_at_k_20_the_worlds_are_figure_5s():
    found = judged(world(TWICE), TWICE)
    assert set(found.values()) == {"holds", "as predicted"}
    assert set(found) - set(judged(world())) == {"earlier"}
    # a net that breaks no earlier than Figure 2's refutes both what is said of its radius and of the comparison
    late = {name: lambda a: xr.where(a.p == 1, 0.32 + 0 * a, a) for name in ("lower", "upper")}
    found = judged(world(TWICE, **late), TWICE)
    assert (found["earlier"], found["radius.p1"], found["radius.p3"]) == (
        "differs",
        "differs",
        "holds",
    )


@pytest.mark.slow
def test_sgd_ends_where_the_flow_does_and_the_released_attack_does_not_see_it():
    outcome = sgd.run(SMALL, new_bench())
    found = verdicts(outcome.claims)
    assert found["zero.p3"] == "as predicted"
    assert found["exact.merge"] == "holds"
    data = outcome.data.sel(p=3.0)
    assert float(abs(data.distance - data.flow_distance).median()) < 0.05
    assert float(data.zero.sel(radius=0.75).min()) > 0.9
    assert float((data.upper > 0.75).mean()) == 0
    figure = sgd.draw(outcome.data, SMALL)
    labels = [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]
    assert labels == [f"$p$ = {p}: {what}" for p in (1, 3) for what in ("exact", "released attack")]


def test_in_a_world_that_agrees_all_claims_do():
    assert set(judged(world()).values()) == {"holds", "as predicted"}


def test_the_loop_is_the_papers_own():
    """One alpha by a plain loop with autograd, in the same order of batches."""
    config = replace(SMALL, alpha=(0.05,), epochs=2, repeats=1)
    bench = new_bench()
    drawn = draw_one(config, bench, 0.05, 0)
    w, v = (t.clone().requires_grad_() for t in (1e6 * drawn.w, 1e6 * drawn.v))  # far enough to see
    order = bench.generator("fig2_sgd", "order", seed=0)
    for _ in range(config.epochs):
        for rows in torch.randperm(config.n, generator=order).split(config.batch):
            x, y = drawn.train.x[rows].double(), drawn.train.y[rows].double()
            loss = torch.exp(-y * TwoLayerNet(w, v, p=3.0)(x)).mean()
            slopes = torch.autograd.grad(loss, (w, v))
            with torch.no_grad():
                w -= config.step * slopes[0]
                v -= config.step * slopes[1]
    start = TwoLayerNet(1e6 * drawn.w[None], 1e6 * drawn.v[None], p=3.0)
    found = sgd.descend(
        start, drawn.train.x[None].double(), drawn.train.y[None].double(), step=config.step, epochs=config.epochs,
        batch=config.batch, generator=bench.generator("fig2_sgd", "order", seed=0),
    ).net  # fmt: skip
    torch.testing.assert_close(found.w[0], w.detach(), rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(found.v[0], v.detach(), rtol=1e-8, atol=1e-10)


def test_bundles_are_the_net_but_for_their_bound():
    stream = torch.Generator().manual_seed(4)
    for p in (1.0, 1.5, 3.0):
        lead = torch.nn.functional.normalize(torch.randn(3, 12, generator=stream).double(), dim=1)
        w = (lead.repeat(20, 1) + 0.02 * torch.randn(60, 12, generator=stream)) * torch.rand(
            60, 1, generator=stream
        )
        net = TwoLayerNet(w, torch.tensor([1.0, -1.0, 1.0]).double().repeat(20), p=p)
        found = bundled(net)
        assert len(found.net.v) == 3
        x = torch.nn.functional.normalize(torch.randn(4000, 12, generator=stream).double(), dim=1)
        x = torch.cat([x, torch.nn.functional.normalize(w, dim=1), -w])
        apart = (found.net(x) - net(x)).abs() / x.norm(dim=1) ** p
        assert 0 < float(apart.max()) <= found.error * float((net.v * w.norm(dim=1)).abs().sum())
        assert found.error < 0.05


def test_the_released_attack_walks_to_its_own_centre():
    mixture = min2024_mixture(10, 4, 2, 0.01, torch.Generator().manual_seed(0))
    test = mixture.sample(40, torch.Generator().manual_seed(1))
    left = sgd.from_zero(centre_net(mixture, 3.0), test, replace(SMALL, radius=(0.0, 0.75, 1.3)))
    assert left == [1.0, 1.0, 0.0]


def test_the_released_attack_is_pgd_from_zero():
    """Beside the house's PGD in the whole space, at one radius after another."""
    stream = torch.Generator().manual_seed(2)
    mixture = min2024_mixture(10, 4, 2, 0.1, stream)
    test = mixture.sample(60, stream)
    bent = 0.4 * torch.randn(4, 10, generator=stream).double()
    for p, radii in ((1.0, (0.0, 0.4, 0.7)), (3.0, (0.0, 0.4, 0.7))):
        net = centre_net(mixture, p)
        net, config = replace(net, w=net.w + bent), replace(SMALL, radius=radii)
        own = sgd.from_zero(net, test, config)
        assert own[0] == float((test.y * net(test.x) > 0).double().mean())
        for radius, left in zip(config.radius[1:], own[1:], strict=True):
            found = pgd(
                net, test.x, test.y, [radius], starts=("zero",), steps=config.attack_steps,
                step=config.attack_step / radius,
            )  # fmt: skip
            assert left == pytest.approx(float(found.robust_accuracy[0]))
            assert 0 < left < own[0]


@pytest.mark.parametrize(
    ("name", "change", "id", "verdict"),
    [
        ("distance", lambda a: a + 0.3, "distance.p1", "not as predicted"),
        ("distance", lambda a: a + 0.3, "flow.distance.p3", "not as predicted"),
        ("flow_lower", lambda a: a / 2, "flow.radius.p3", "not as predicted"),
        ("distance", lambda a: 0.1 - a, "distance.rises", "differs"),
        ("least", lambda a: a / 4, "all.p3", "differs"),
        ("lower", lambda a: a / 2, "radius.p1", "differs"),
        ("lower", lambda a: a / 2, "robust.p3", "differs"),
        ("within", lambda a: a * 0.9, "learned.p1", "differs"),
        ("within", lambda a: a * 0.9, "learned.p3", "differs"),
        ("zero", lambda a: a * 0, "zero.p3", "not as predicted"),
        ("zero", lambda a: a * 0 + 1, "zero.p1", "not as predicted"),
        ("merge_error", lambda a: a + 0.1, "exact.merge", "differs"),
        ("merge_error", lambda a: a + 0.1 * (a.alpha > 0.03), "exact.merge", "differs"),
    ],
)
def test_every_claim_can_fail(name, change, id, verdict):
    assert judged(world(**{name: change}))[id] == verdict


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batch": 400}, "batch=400"),
        ({"step": -0.1}, "step=-0.1"),
        ({"p": (2.0,)}, "min2025.transition"),
        ({"init": 0.1}, "init=0.1"),
    ],
)
def test_what_is_refused(settings, words):
    with pytest.raises(CallError, match=words):
        replace(SMALL, **settings)


def test_one_net_of_each_alpha_is_enough():
    """As many nets as the released size has, of one seed."""
    alpha = [0.01 * i for i in range(1, 8)]
    one = world().isel(seed=[0], alpha=[0] * 7).assign_coords(alpha=alpha)
    one["distance"] = one.distance + 0.001 * xr.DataArray(range(7), dims="alpha")
    assert set(judged(one, replace(SMALL, alpha=tuple(alpha), repeats=1)).values()) == {
        "holds",
        "as predicted",
    }


def test_the_radius_next_to_three_quarters_is_the_one_that_is_judged():
    config = replace(SMALL, radius=(0.0, 0.3, 0.72, 0.75, 0.95))
    blind = {"zero": lambda a: xr.where((a.p == 3) & (a.radius == 0.75), 0 * a, a)}
    assert judged(world(config, **blind))["zero.p3"] == "not as predicted"
    seen = {"zero": lambda a: xr.where((a.p == 3) & (a.radius != 0.75), 0 * a, a)}
    assert judged(world(config, **seen))["zero.p3"] == "as predicted"


def test_no_quiet_noise_and_no_radius_beyond_claim_nothing_of_them():
    loud = world().assign_coords(alpha=[0.2, 0.3])
    found = judged(loud, replace(SMALL, alpha=(0.2, 0.3)))
    assert {id for id in found if id.startswith(("zero", "robust", "radius"))} == {"zero.p1"}
    assert "zero.p3" not in judged(world().sel(radius=[0.0, 0.3]))
