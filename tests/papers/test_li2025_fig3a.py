"""li2025.fig3a: its nets, its radii against the theorems where noise is small, and its configs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tacit.base.estimate import between
from tacit.errors import CallError
from tacit.measure import mean_of
from tacit.papers.li2025.fig3a import exhibit as fig3a
from tacit.papers.li2025.fig3a.settings import EXHIBITS, Curves

TINY = Curves(
    k=4, k1=2, d=200, m=2, h=(1,), n=80, equal=True, sigma=0.1, eta=0.01, T=60, longer=90,
    points=12, repeats=2,
)  # fmt: skip


def test_with_little_noise_and_long_training_the_radii_are_the_theorems(bench):
    outcome = fig3a.run(TINY, bench)
    found = {claim.id: claim for claim in outcome.claims}
    assert set(found) == {"clean", "order", "finite.2", "finite.k", "longer.2", "longer.k"}
    assert found["order"].verdict == "holds"
    assert found["clean"].verdict == "undecided"  # two data sets are not most
    assert (found["clean"].measured, found["clean"].n) == (1.0, 2)
    assert {claim.source for claim in outcome.claims if claim.id != "order"} == {"ours"}
    data = outcome.data
    two = float(data.critical.sel(net="2 labels", end="upper", of="value"))
    assert two == pytest.approx(math.sqrt(200 / 4), rel=0.03)
    many = data.critical.sel(net="4 labels, h = 1", of="value").values
    assert many[0] <= many[1] < math.sqrt(100) * 1.01
    assert many[0] > 0.9 * math.sqrt(100)
    assert (data.radius.sel(end="lower") <= data.radius.sel(end="upper")).all()
    # the curve is the share of points whose radius is larger
    at = float(data.level[60])
    share = float((data.radius.sel(net="2 labels", end="upper") > at).mean())
    assert float(data.robust.sel(net="2 labels", end="upper", level=at)) == share
    figure = fig3a.draw(data, TINY)
    assert len(figure.axes) == 1


def test_a_radius_lies_between_its_certificate_and_its_attack():
    lower, upper = [0.9, 0.92, 0.91], [1.0, 1.01, 0.99]
    found = between(mean_of(lower), mean_of(upper))
    assert (found.value, found.fixed) == pytest.approx((0.955, 0.045))
    assert found.low < 0.9 < 1.01 < found.high
    # one data set says nothing of others
    alone = between(mean_of(lower[:1]), mean_of(upper[:1]))
    assert (alone.low, alone.high) == (-math.inf, math.inf)


def test_training_in_the_span_of_few_points_is_training(bench):
    config = replace(TINY, T=20, longer=0)
    mixture = fig3a.mixture_of(config.d, config.k, config.k1, generator=bench.generator("data"))
    train = mixture.sample(80, bench.generator("x"))
    for name in fig3a.names(config):
        few, plain = (
            fig3a.trained(replace(config, n=n), bench, 0, name, train, mixture.labels, 0)[0].w
            for n in (80, 101)  # above d/2 all coordinates are used
        )
        torch.testing.assert_close(few, plain, rtol=1e-4, atol=1e-6)


def test_the_nets_are_those_of_section_6(bench):
    config = replace(TINY, longer=0, T=3)
    mixture = fig3a.mixture_of(config.d, config.k, config.k1, generator=bench.generator("data"))
    train = mixture.sample(40, bench.generator("x"))
    binary, multi = (
        fig3a.trained(config, bench, 0, name, train, mixture.labels, 0)[0]
        for name in fig3a.names(config)[:2]
    )
    assert binary.w.shape == (4, 200)
    assert binary.v.tolist() == [0.5, 0.5, -0.5, -0.5]
    assert binary.b is not None
    assert multi.w.shape == (4, 1, 200)
    assert torch.equal(multi.labels.double(), mixture.labels)
    both = fig3a.trained(config, bench, 0, "2 labels", train, mixture.labels, 6)
    assert torch.equal(both[0].w, binary.w)
    assert not torch.equal(both[1].w, binary.w)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": 2, "k1": 1}, "k=2"),
        ({"k": 300}, "k=300 > d"),
        ({"k1": 4}, "k1=4"),
        ({"h": ()}, "at least one"),
        ({"h": (1, 1)}, "each value once"),
        ({"sigma": -1.0}, "sigma"),
        ({"sigma": 0.0}, "sigma=0"),
        ({"eta": 0.0}, "eta"),
        ({"longer": 10}, "more steps than T"),
    ],
)
def test_bad_settings_are_refused(change, words):
    with pytest.raises(CallError, match=words):
        replace(TINY, **change)


def test_the_scales_are_the_papers():
    scales = EXHIBITS[0].scales
    for name in ("laptop", "paper"):
        c = scales[name]
        assert (c.k, c.d, c.m, c.n, c.eta, c.init, c.T) == (10, 3072, 5, 1000, 1e-3, 1e-5, 100)
    assert np.isclose(scales["smoke"].d, 200)
