"""li2025.story: theory against closed forms and brute force, attacks in the span, intervals of 1-NN."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from benches import verdicts
from tacit.certify import nearest_radius
from tacit.certify.nearest.spheres import cluster_nearest
from tacit.errors import CallError
from tacit.nets import NearestNeighbour, TwoLayerNet
from tacit.papers.li2025._shared.synthetic import mixture_of
from tacit.papers.li2025.story import exhibit as story
from tacit.papers.li2025.story.settings import EXHIBITS, Story
from tacit.papers.li2025.story.theory import expected_max, predictions
from tacit.train.descent.perturbed import ASCENTS, REACH, attacked, noisy

TINY = Story(
    d=60, k=4, k1=2, n=60, points=5, m=3, wide=3, T=30, eta=0.01, width=20, sigma=0.5
)  # fmt: skip


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_expected_maximum_is_the_known_one():
    assert expected_max(1) == pytest.approx(0, abs=1e-6)
    assert expected_max(2) == pytest.approx(1 / math.sqrt(math.pi), abs=1e-6)
    assert expected_max(3) == pytest.approx(1.5 / math.sqrt(math.pi), abs=1e-6)


def test_closed_forms_have_the_predicted_median_radii():
    """f_FA, both readings of f_dec, and the Bayes rule, at many points: exact radii, no training."""
    from tacit.certify import radius
    from tacit.nets import BayesRule, average_net, decoupled_net

    config = Story(k1=4)
    mixture = mixture_of(config.d, config.k, config.k1, generator=gen(1))
    points = mixture.sample(4000, gen(2))
    theory = predictions(config)
    found = {
        "f_FA": radius(average_net(mixture), points.x, points.y),
        "f_dec": radius(decoupled_net(mixture), points.x, points.y),
        "strict": radius(decoupled_net(mixture), points.x, points.y, ties_break=False),
        "bayes": radius(BayesRule(mixture), points.x, points.y),
    }
    for key, radii in found.items():
        assert float(radii.upper.median()) == pytest.approx(theory[key], rel=0.01), key


def test_the_attack_in_the_span_is_pgd_in_the_whole_space():
    net = TwoLayerNet(
        torch.randn(6, 9, generator=gen(1)).double(),
        torch.tensor([1.0, 1, 1, -1, -1, -1]).double() / 3,
        torch.randn(6, generator=gen(2)).double(),
    )
    x = torch.randn(20, 9, generator=gen(3)).double()
    y = torch.where(torch.arange(20) % 2 == 0, 1.0, -1.0).double()
    delta = torch.zeros_like(x)
    for _ in range(ASCENTS):
        at = (x + delta).requires_grad_()
        (slope,) = torch.autograd.grad((y * net(at)).sum(), at)
        delta = delta - REACH / ASCENTS * 0.7 * slope / slope.norm(dim=1, keepdim=True).clamp_min(
            1e-30
        )
        delta = delta * (0.7 / delta.norm(dim=1, keepdim=True).clamp_min(1e-30)).clamp_max(1)
    moved = attacked(0.7)(net, x, y)
    torch.testing.assert_close(moved, x + delta)
    assert ((moved - x).norm(dim=1) <= 0.7 * (1 + 1e-12)).all()
    torch.testing.assert_close(attacked(0.0)(net, x, y), x)


def test_added_noise_is_fresh_and_of_the_stated_size():
    net = TwoLayerNet(torch.ones(1, 50), torch.ones(1))
    perturb, x, y = noisy(0.5, gen(4)), torch.zeros(400, 50), torch.ones(400)
    first, second = perturb(net, x, y), perturb(net, x, y)
    assert float(first.std()) == pytest.approx(0.5, rel=0.02)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("seed", range(4))
def test_the_interval_of_the_nearest_neighbour_holds_the_exact_radius(seed):
    mixture = mixture_of(30, 4, 2, sigma=0.7, generator=gen(seed))
    train, test = mixture.sample(40, gen(seed + 50)), mixture.sample(12, gen(seed + 90))
    rule = NearestNeighbour(train.x, train.y)
    exact = nearest_radius(rule, test.x, test.y).upper
    found = cluster_nearest(rule, train.z, test.x, test.y)
    assert (found.lower <= exact * (1 + 1e-7)).all()
    assert (found.upper >= exact * (1 - 1e-7)).all()
    assert float((found.lower / exact).nanmedian()) > 0.95


@pytest.mark.slow
def test_the_nearest_neighbour_has_the_predicted_radius():
    config = Story(d=2000, n=400)
    mixture = mixture_of(config.d, config.k, config.k1, generator=gen(5))
    train, test = mixture.sample(config.n, gen(6)), mixture.sample(60, gen(7))
    found = cluster_nearest(NearestNeighbour(train.x, train.y), train.z, test.x, test.y)
    assert float(found.middle.median()) == pytest.approx(predictions(config)["nearest"], rel=0.05)


def test_theory_is_silent_where_it_has_no_value():
    assert set(predictions(replace(TINY, cosine=0.1))) == {"f_FA", "bayes"}
    assert set(predictions(replace(TINY, cosine=0.1, k1=1))) == {"bayes"}
    weighted = predictions(replace(TINY, weights=(1.0, 2.0, 1.0, 1.0)))
    assert set(weighted) == {"f_FA", "bayes", "f_dec", "strict"}
    assert predictions(replace(TINY, sigma=5.0)) == {}


def test_a_run_has_a_claim_and_an_interval_for_every_classifier(bench):
    outcome = story.run(TINY, bench)
    data = outcome.data
    assert set(verdicts(outcome)) == set(story.MAKERS)
    assert data.lower.dims == ("seed", "classifier", "point")
    assert (data.lower <= data.upper * (1 + 1e-9)).all()
    assert (data.critical.sel(end="value") >= 0).all()
    (axes,) = story.draw(data, TINY).axes
    assert len(axes.get_yticklabels()) == len(story.MAKERS)


@pytest.mark.parametrize("noise", ["uniform", "student"])
def test_other_noise_shapes_run_and_are_told(noise, bench):
    config = replace(TINY, noise=noise, T=5, width=10)
    here = story.scene(config, bench, 0)
    assert here.mixture.noise == noise
    radii = story.MAKERS["bayes"](config, here, gen(), "cpu")
    assert (radii.lower <= radii.upper).all()
    assert noise in story.outside(config)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"weights": (1.0, 2.0)}, "weights has 2 values"), ({"weights": (1.0, 1.0, 1.0, 0.0)}, "weights=0"),
     ({"sigma": 0.0}, "sigma=0"), ({"cosine": -0.5}, "cosine=-0.5"), ({"cosine": 1.0}, "less than 1"),
     ({"k1": 4}, "^k1=4 with k=4"), ({"k": 90}, "^k=90 > d="),
     ({"attack": -1.0}, "attack=-1"), ({"p": 1.5}, "p=1.5"), ({"points": 0}, "points=0")],
)  # fmt: skip
def test_impossible_settings_are_refused(settings, words):
    with pytest.raises(CallError, match=words):
        replace(TINY, **settings)


def test_the_entry_loads():
    assert EXHIBITS[0].id == "li2025.story"
    assert callable(EXHIBITS[0].load().run)
    assert np.isfinite(list(predictions(EXHIBITS[0].scales["paper"]).values())).all()
