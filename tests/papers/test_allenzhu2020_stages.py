"""allenzhu2020, Section 8.2: the three stages, the angles of Figure 2, the pictures of Figures 6 and 11."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

from benches import new_bench, verdicts
from tacit.attack import Ball
from tacit.base.identity import identity_of
from tacit.errors import CallError
from tacit.nn import AlexNet
from tacit.papers._shared.deep import DeepImages
from tacit.papers.allenzhu2020.deep.settings import STAGES_SMOKE, Stages, regime_of
from tacit.papers.allenzhu2020.deep.stages import STAGES, AsGood, accuracies, stage_recipe, staged
from tacit.papers.allenzhu2020.fig2 import exhibit as fig2
from tacit.papers.allenzhu2020.fig2.claims import claims as fig2_claims
from tacit.papers.allenzhu2020.fig2.settings import Turned
from tacit.papers.allenzhu2020.fig11 import exhibit as fig11
from tacit.papers.allenzhu2020.fig11.claims import claims as fig11_claims
from tacit.papers.allenzhu2020.fig11.settings import Purified
from tacit.train.deep.fit import Watch

TINY = Stages(**STAGES_SMOKE | {"train": 128})


# the stages


def test_a_stage_is_footnote_17():
    """Step .1, a tenth of it after epoch 40 of 50; epsilon grows over 10 epochs; plain momentum."""
    clean, robust = stage_recipe(Stages()), stage_recipe(Stages(), "l2one")
    for recipe in (clean, robust):
        assert recipe.step_sizes(1) == pytest.approx([0.1] * 40 + [0.01] * 10)
        assert (recipe.momentum, recipe.nesterov, recipe.decay) == (0.9, False, 1e-4)
    assert robust.radii(1) == pytest.approx([min(1, k / 10) for k in range(1, 51)])
    assert clean.ball is None


def test_layers_below_stay_robust_and_the_others_go_from_random_to_clean_to_robust():
    layer = 5
    made = staged(TINY, new_bench(scale="smoke"), layer)
    first = made.first.state_dict()
    kept = [name for n in range(1, layer) for name in names_of(made.first, made.first.parts_of(n))]
    assert len(kept) > 10
    for stage in STAGES:
        state = made.nets[stage].state_dict()
        assert all(torch.equal(state[name], first[name]) for name in kept), stage
    rows = [made.nets[s].convolutions[layer - 1].weight for s in STAGES]
    rows.append(made.first.convolutions[layer - 1].weight)
    assert all(not torch.equal(rows[i], rows[j]) for i in range(4) for j in range(i))
    assert all(not net.training for net in made.nets.values())
    assert 1 <= made.epochs <= TINY.epochs


def names_of(net: nn.Module, parts: list[nn.Module]) -> list[str]:
    """The names, in the whole net's state, of what these parts hold."""
    inside = {id(m) for part in parts for m in part.modules()}
    homes = [name for name, m in net.named_modules() if id(m) in inside]
    return [key for key in net.state_dict() if key.rpartition(".")[0] in homes]


def test_all_layers_share_one_first_stage_and_one_seed_gives_the_same():
    bench = new_bench(scale="smoke")
    one, other = staged(TINY, bench, 7), staged(TINY, bench, 5)
    for a, b in zip(one.first.parameters(), other.first.parameters(), strict=True):
        assert torch.equal(a, b)
    again = staged(TINY, new_bench(scale="smoke"), 7)
    assert torch.equal(again.nets["robust"].head.weight, one.nets["robust"].head.weight)


class Bright(nn.Module):
    """Class 0 where the mean pixel is above .5."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        up = x.flatten(1).mean(1) - 0.5
        return torch.stack([up, -up], 1)


def test_both_accuracies_are_counted_and_both_have_to_be_reached():
    x = torch.tensor([0.4, 0.52, 0.7, 0.9]).view(-1, 1, 1, 1).expand(-1, 1, 4, 4).clone()
    y = torch.zeros(4, dtype=torch.long)
    found = accuracies(Ball(math.inf, 0.1, 3, 1.0), x, y, 0, Bright().eval())
    assert found.tolist() == [0.5, 0.75]
    assert AsGood([0.5, 0.75], "net")(found)
    assert not AsGood([0.6, 0.5], "net")(found)
    assert not AsGood([0.4, 0.8], "net")(found)


def test_what_ends_stage_3_is_known_by_the_net_and_not_by_its_last_digit():
    """A GPU may count one noisy copy more the next time: that is no other training."""
    known = identity_of(AsGood([0.5, 0.75], "net"))
    assert identity_of(AsGood([0.5, 0.7498], "net")) == known
    assert identity_of(AsGood([0.5, 0.75], "another")) != known
    assert (
        AsGood.__call__ in AsGood([0.5, 0.75], "net").identity()
    )  # another rule is another training


def test_a_stage_3_that_ended_early_got_there_whatever_the_goal_is_measured_to_be_anew(monkeypatch):
    config = replace(TINY, epochs=2)

    def with_goal(goal: float):
        def until(config: Stages, bench: object, images: DeepImages, first: nn.Module) -> Watch:
            look = partial(accuracies, Ball(math.inf, 0.1, 1, 1.0), *images.tested(4, "cpu"), 0)
            return Watch(look, AsGood([goal, goal], "net"))

        monkeypatch.setattr("tacit.papers.allenzhu2020.deep.stages.until_as_good", until)

    bench = new_bench(scale="smoke")
    with_goal(0.0)
    ended = staged(config, bench, 7)
    assert (ended.epochs, ended.reached) == (1, True)
    with_goal(2.0)
    again = staged(config, bench, 7)  # from the store
    assert (again.epochs, again.reached) == (1, True)
    never = staged(config, new_bench(scale="smoke", seed=3), 7)  # trained anew
    assert (never.epochs, never.reached) == (2, False)


def test_the_regime_names_what_was_cut():
    assert "paper: 50, 50" not in regime_of(Stages())
    assert "stages of 10, 50 and at most 10 epochs (paper: 50, 50" in regime_of(Stages(epochs=10))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Stages(layers=(32,)), "layers=32: ResNet-34 has the convolutions 1 to 31"),
        (lambda: Turned(points=0), "points"),
        (lambda: Purified(neurons=1), "neurons"),
        (lambda: fig2.run(Turned(**STAGES_SMOKE, points=10**6), new_bench()), "points=1000000"),
    ],
)
def test_settings_that_are_refused(make, words):
    with pytest.raises(CallError, match=words):
        make()


# angles


def test_angles_are_those_of_the_filters_one_by_one():
    draws = torch.Generator().manual_seed(0)
    nets = {stage: AlexNet(width=4, generator=draws) for stage in STAGES}
    found = fig2.angles_of(nets, 3)
    w = {s: net.convolutions[2].weight.detach().double() for s, net in nets.items()}

    def by_hand(u: torch.Tensor, v: torch.Tensor) -> float:
        return abs(float((u * v).sum())) / math.sqrt(float((u * u).sum() * (v * v).sum()))

    for i in (0, 5, 23):
        assert float(found.start_clean[i]) == pytest.approx(by_hand(w["random"][i], w["clean"][i]))
        assert float(found.clean_robust[i]) == pytest.approx(by_hand(w["clean"][i], w["robust"][i]))
    others = [by_hand(w["clean"][5], w["clean"][j]) <= 0.2 for j in range(24) if j != 5]
    assert float(found.apart[5]) == pytest.approx(sum(others) / 23)
    with (
        torch.no_grad()
    ):  # theta is 0 where a filter is: it is apart from the 23 others, not from itself
        nets["clean"].convolutions[2].weight[7] = 0
    assert float(fig2.angles_of(nets, 3).apart[7]) == 1.0


def angles(config: Turned, turned: float) -> xr.Dataset:
    """A world of 60 neurons a layer in which theta(w, w') is `turned`, and all else as the paper says."""
    units = [("AlexNet", 1), *((config.net, layer) for layer in config.layers)]
    value = {"start_clean": 0.1, "start_robust": 0.1, "clean_robust": turned, "apart": 0.95}
    shares = {"plain": {"stage 1": 0.68, "clean": 0.85, "robust": 0.69},
              "own": {"stage 1": 0.44, "clean": 0.0, "robust": 0.44}}  # fmt: skip
    count = np.arange(5000) * 0.6180339887 % 1
    held = {
        key: np.stack([[count < share for share in by.values()]] * len(units)).astype(float)
        for key, by in shares.items()
    }
    return xr.Dataset(
        {k: (("unit", "neuron"), np.full((len(units), 60), v)) for k, v in value.items()}
        | {k: (("unit", "stage", "point"), v) for k, v in held.items()}
        | {"epochs": ("unit", [np.nan] + [20.0] * len(config.layers)),
           "reached": ("unit", [np.nan] + [1.0] * len(config.layers))},
        coords={"net": ("unit", [u[0] for u in units]), "layer": ("unit", [u[1] for u in units]),
                "stage": list(shares["own"])},
    )  # fmt: skip


def test_the_papers_world_holds_and_one_in_which_purification_turns_features_differs():
    config, bench = Turned(layers=(17, 29)), new_bench(scale="paper")
    found = verdicts(list(fig2_claims(angles(config, 0.9), config, bench)))
    assert found == dict.fromkeys(found, "holds")
    assert set(found) == {
        "start.clean",
        "start.robust",
        "clean.robust",
        "pairs",
        "order",
        "accuracy",
        "reached",
    }
    turned = verdicts(list(fig2_claims(angles(config, 0.05), config, bench)))
    assert turned["clean.robust"] == turned["order"] == "differs"
    assert turned["start.clean"] == "holds"
    late = angles(config, 0.9)
    late["reached"][1:] = 0.0
    late["own"][:, 1] = 0.1
    worse = verdicts(list(fig2_claims(late, config, bench)))
    assert worse["reached"] == worse["accuracy"] == "differs"
    small = replace(config, train=5000)
    assert (
        verdicts(list(fig2_claims(angles(small, 0.9), small, bench)))["accuracy"]
        == "not testable here"
    )


# pictures


def pictures(config: Purified, robust: float) -> xr.Dataset:
    """A world in which robust features have that share of coarse shapes, and a variation to match."""
    draws = np.random.default_rng(0)
    coarse = np.stack([[0.05, 0.06, robust]] * len(config.layers))[..., None]
    coarse = coarse + draws.normal(0, 0.005, (*coarse.shape[:2], 40))
    return xr.Dataset(
        {"coarse": (("layer", "stage", "neuron"), coarse),
         "variation": (("layer", "stage", "neuron"), 1.13 - coarse),
         "natural_coarse": ("picture", np.full(5, 0.8)),
         "natural_variation": ("picture", np.full(5, 0.3))},
        coords={"layer": list(config.layers), "stage": list(STAGES)},
    )  # fmt: skip


def test_pictures_after_stage_3_hold_and_noise_differs():
    config, bench = Purified(layers=(9, 27)), new_bench(scale="paper")
    found = verdicts(list(fig11_claims(pictures(config, 0.5), config, bench)))
    assert found == {"robust": "holds", "random": "as predicted", "natural": "as predicted"}
    noise = verdicts(list(fig11_claims(pictures(config, 0.04), config, bench)))
    assert noise == {
        "robust": "differs",
        "random": "not as predicted",
        "natural": "not as predicted",
    }


@pytest.mark.parametrize(("rest", "pulled"), [("black", 0.0), ("grey", 0.5)])
def test_images_are_pulled_to_black_or_grey_in_every_stage(rest, pulled, monkeypatch):
    asked = []

    def features_of(*_args: object, rest: float, **_more: object) -> xr.Dataset:
        asked.append(rest)
        return xr.Dataset({"coarse": ("neuron", [0.1])})

    monkeypatch.setattr(fig11, "staged", lambda *_: SimpleNamespace(nets=dict.fromkeys(STAGES)))
    monkeypatch.setattr(fig11, "features_of", features_of)
    config = Purified(**STAGES_SMOKE, rest=rest)
    assert fig11.layer_features(config, 7, new_bench()).stage.values.tolist() == list(STAGES)
    assert asked == [pulled] * 3


def test_a_short_training_does_not_decide_how_far_weights_turn():
    short = Turned(layers=(17,), train=3000, clean_epochs=5)
    made = {c.id: c for c in fig2_claims(angles(short, 0.9), short, new_bench(scale="laptop"))}
    assert all(made[id].verdict == "not testable here" for id in made if id != "reached")
    assert "so few steps" in made["clean.robust"].reason
    assert made["reached"].verdict == "holds"
