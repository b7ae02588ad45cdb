"""Deep nets of several papers: their images, the store, and a CPU that nobody insisted on."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from tacit.attack.inner import Ball
from tacit.data.images import load_images
from tacit.errors import CallError
from tacit.lab.models.store import Models
from tacit.nn import PreActResNet
from tacit.papers._shared.deep import Job, deep_images, deep_nets
from tacit.train import Recipe

RECIPE = Recipe(epochs=1, batch=50, crop=0, flip=False)
BALL = Ball(math.inf, 0.1, 1, 1.0)


def job(seed: int = 0, **changes) -> Job:
    images = deep_images("digits", train=100, side=4)
    start = images.standardise(
        PreActResNet(10, 1, channels=1, generator=torch.Generator().manual_seed(0))
    )
    return Job(start, replace(RECIPE, **changes), images, seed)


def test_images_are_averaged_and_labels_merged_as_by_hand():
    whole, images = load_images("digits", "test"), deep_images("digits", side=4, merged=2)
    by_hand = whole.x.astype(float).reshape(-1, 4, 2, 4, 2, 1).mean((2, 4))
    assert abs(images.test_x.numpy() - by_hand).max() <= 0.5
    assert images.test_y.tolist() == [int(y >= 5) for y in whole.y]
    assert len(deep_images("digits", train=30).y) == 30
    x, y = images.tested(7, "cpu")
    assert x.shape == (7, 1, 4, 4)
    assert 0 <= float(x.min()) < float(x.max()) <= 1
    assert len(y) == 7


def test_the_nets_own_means_are_those_of_the_images():
    images = deep_images("digits")
    net = images.standardise(PreActResNet(10, 1, channels=1))
    seen = (images.x.permute(0, 3, 1, 2).double() / images.top - net.mean) / net.std
    assert float(seen.mean()) == pytest.approx(0, abs=1e-5)
    assert float(seen.std()) == pytest.approx(1, abs=1e-5)


def test_a_net_is_trained_once(bench, monkeypatch):
    first = deep_nets(bench, {"clean": job()})["clean"]
    monkeypatch.setattr(Models, "_keep", lambda *_: pytest.fail("trained again"))
    again = deep_nets(bench, {"clean": job()})["clean"]
    assert not again.training
    for one, other in zip(first.state_dict().values(), again.state_dict().values(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    "other", [job(seed=1), job(step=0.2), job(ball=BALL), job(ball=replace(BALL, radius=0.2))]
)
def test_another_recipe_is_another_net(bench, other):
    nets = deep_nets(bench, {"one": job(), "other": other})
    assert not torch.equal(nets["one"].stem.weight, nets["other"].stem.weight)


def test_a_job_may_go_on_from_another(bench):
    """By steps of no length it stays there."""
    still = replace(job(ball=BALL, step=1e-12), start="clean")
    nets = deep_nets(bench, {"clean": job(), "robust": still})
    torch.testing.assert_close(nets["robust"].stem.weight, nets["clean"].stem.weight)
    assert not torch.equal(nets["clean"].stem.weight, job().start.stem.weight)


def test_paper_scale_on_a_cpu_has_to_be_insisted_on(bench):
    unasked = replace(bench, scale="paper", insisted=False)
    with pytest.raises(CallError, match=r"no GPU is seen here.*hours on this CPU.*--device cpu"):
        deep_nets(unasked, {"clean": job()})
    deep_nets(replace(unasked, insisted=True), {"clean": job()})
    deep_nets(unasked, {"clean": job()})  # it is in the store now


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"merged": 3}, "merged=3"), ({"side": 3}, "side=3"), ({"train": 10**6}, "train=1000000")],
)
def test_what_is_refused(settings, words):
    with pytest.raises(CallError, match=words):
        deep_images("digits", **settings)
