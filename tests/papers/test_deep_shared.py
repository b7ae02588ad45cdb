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
from tacit.nn.layered import LayeredNet
from tacit.papers._shared.deep import DeepImages, Job, deep_images, deep_nets, deep_trainings
from tacit.train import Recipe, Watch

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
    x = torch.randint(0, 256, (5, 4, 4, 3), dtype=torch.uint8)
    plain = x.double() / 255
    by_hand = tuple(f(plain, (0, 1, 2)).tolist() for f in (torch.mean, torch.std))
    y = torch.zeros(5, dtype=torch.long)
    found = DeepImages("made up", x, y, x, y, 255).moments
    assert found[0] == pytest.approx(by_hand[0], rel=1e-12)
    assert found[1] == pytest.approx(by_hand[1], rel=1e-12)


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


def drawn_anew(net: LayeredNet) -> LayeredNet:
    return net.redraw_from(5, torch.Generator().manual_seed(3)).freeze_below(5)


def test_a_job_may_draw_layers_anew_and_freeze_the_others(bench):
    later = replace(job(), start="clean", prepare=drawn_anew)
    nets = deep_nets(bench, {"clean": job(), "later": later})
    pairs = zip(nets["clean"].convolutions, nets["later"].convolutions, strict=True)
    same = [torch.equal(one.weight, other.weight) for one, other in pairs]
    assert same == [True] * 4 + [False] * 3
    assert all(p.requires_grad for p in nets["later"].parameters())
    free = replace(job(), start=drawn_anew(nets["clean"]).freeze_below(1))
    assert (
        not torch.equal(  # from the same weights, but nothing is frozen: not the net that was kept
            deep_nets(bench, {"later": free})["later"].stem.weight, nets["later"].stem.weight
        )
    )


def head_of(net: torch.nn.Module) -> torch.Tensor:
    return net.head.bias


def test_what_was_watched_is_kept_with_the_net(bench, monkeypatch):
    watched = replace(job(epochs=2), watch=Watch(head_of))
    first = deep_trainings(bench, {"one": watched})["one"]
    assert first.watched.shape == (3, 10)
    monkeypatch.setattr(Models, "_keep", lambda *_: pytest.fail("trained again"))
    again = deep_trainings(bench, {"one": watched})["one"]
    assert (again.watched == first.watched).all()
    assert deep_nets(bench, {"one": job(epochs=2)})  # the same net: to look changes nothing


def test_what_ends_a_training_is_part_of_its_recipe(bench):
    at_once = replace(job(epochs=2), watch=Watch(head_of, lambda _: True))
    found = deep_trainings(bench, {"whole": job(epochs=2), "short": at_once})
    assert len(found["short"].watched) == 2
    assert not torch.equal(found["whole"].net.stem.weight, found["short"].net.stem.weight)


def test_a_job_whose_start_is_not_there_is_refused(bench):
    with pytest.raises(CallError, match="'robust' goes on from 'clean', which is not there"):
        deep_nets(bench, {"robust": replace(job(), start="clean")})


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
