"""allenzhu2020, Section 8: attackers, noise, what is chosen, refused and left out; claims on made-up data."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

from benches import new_bench, verdicts
from tacit.attack import Ball
from tacit.errors import CallError, RunError
from tacit.lab.parts import DiskParts
from tacit.lab.settings import with_settings
from tacit.measure.attacked import kept_right
from tacit.nn.residual import PreActResNet
from tacit.papers._shared.deep import deep_nets
from tacit.papers.allenzhu2020.deep.claims import gain, share_of
from tacit.papers.allenzhu2020.deep.deltas import deltas
from tacit.papers.allenzhu2020.deep.figure import mosaic, stretched
from tacit.papers.allenzhu2020.deep.nets import (
    ball_of,
    images_of,
    jobs_of,
    nets_of,
    recipe_of,
    start_net,
)
from tacit.papers.allenzhu2020.deep.settings import SMOKE, Deep, regime_of
from tacit.papers.allenzhu2020.deep.strict import FLAGS, strict
from tacit.papers.allenzhu2020.fig10 import exhibit as fig10
from tacit.papers.allenzhu2020.fig10.settings import Features
from tacit.papers.allenzhu2020.fig12.claims import claims as fig12_claims
from tacit.papers.allenzhu2020.fig12.exhibit import features_in, first_right
from tacit.papers.allenzhu2020.fig12.settings import Reconstruction
from tacit.papers.allenzhu2020.fig13.claims import claims as fig13_claims
from tacit.papers.allenzhu2020.fig13.settings import Attackers
from tacit.papers.allenzhu2020.table1 import exhibit as table1
from tacit.papers.allenzhu2020.table1.claims import CLEAN, FROM_CLEAN, RANDOM, claims
from tacit.papers.allenzhu2020.table1.settings import EVERY, Table

TINY = Deep(**SMOKE)


class Flat(nn.Module):
    """Right on class 0 where the mean pixel is above .5: a net whose margins are known."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        up = x.flatten(1).mean(1) - 0.5
        return torch.stack([up, -up], 1)


def grey(levels: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of one grey each, all of class 0."""
    x = torch.tensor(levels).view(-1, 1, 1, 1).expand(-1, 1, 4, 4).clone()
    return x, torch.zeros(len(levels), dtype=torch.long)


# settings


def test_attackers_are_as_printed():
    for name, radius in (("linf4", 4), ("linf8", 8)):
        ball = ball_of(name)
        assert (ball.norm, ball.radius, ball.steps) == (math.inf, radius / 255, 7)
        assert (ball.random_start, ball.sigma, ball.draws) == (True, 0.0, 1)
    for name, radius, sigma in (("l2half", 0.5, 0.12), ("l2one", 1.0, 0.25)):
        ball = ball_of(name)
        assert (ball.norm, ball.radius, ball.steps, ball.sigma, ball.draws) == (
            2.0,
            radius,
            4,
            sigma,
            2,
        )
        assert not ball.random_start


def test_recipes_have_the_printed_steps_and_grow_l2_radii_alone():
    config = Deep(epochs=18)
    clean, linf, l2 = (recipe_of(config, name) for name in ("", "linf8", "l2one"))
    for recipe in (clean, linf, l2):
        assert (recipe.step, recipe.momentum, recipe.decay, recipe.batch) == (0.1, 0.9, 1e-4, 128)
        assert (recipe.crop, recipe.flip) == (4, True)
    assert (clean.epochs, linf.epochs, l2.epochs) == (80, 18, 18)
    assert (clean.ball, linf.growth, l2.growth) == (None, 0.0, 3.0)  # a sixth of the epochs


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: with_settings(Table(), {"attackers": "linf4,linf9"}), "attackers takes .*linf4"),
        (lambda: Table(attackers=("linf4", "linf4")), "each value once"),
        (lambda: with_settings(Table(), {"sixteen": "l3"}), "sixteen takes .*none"),
        (lambda: with_settings(Table(), {"starts": "warm"}), "starts takes .*random"),
        (lambda: Table(points=100), "strong=4000"),
        (lambda: Deep(depth=18), "6n \\+ 4"),
        (lambda: with_settings(Deep(), {"dataset": "mnist"}), "dataset takes .*cifar10"),
        (lambda: Features(layers=(9, 32)), "layers=32: ResNet-34 has the convolutions 1 to 31"),
        (lambda: Features(**SMOKE), "layers=9: ResNet-10 has the convolutions 1 to 7"),
        (lambda: Attackers(layer=0), "layer=0"),
        (lambda: Reconstruction(error=1.0), "error=1.0"),
        (lambda: Reconstruction(among=10), "among=10"),
    ],
)  # fmt: skip
def test_settings_are_refused_in_one_line(make, said):
    with pytest.raises(CallError, match=said) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_regimes_say_what_is_not_the_papers():
    assert regime_of(Deep(epochs=7)).startswith("shortened: 80 clean and 7 adversarial epochs")
    assert "ResNet-10 for ResNet-34" in regime_of(Deep(depth=10, side=16))
    assert regime_of(TINY).startswith("other data: digits")


# nets


def test_a_net_from_the_clean_one_starts_there_and_others_at_one_random_start():
    bench, images = new_bench(scale="smoke"), images_of(TINY)
    jobs = jobs_of(TINY, bench, images, ("l2one", "linf8.clean", "l2one.sixteen"))
    assert list(jobs) == ["clean", "l2one", "linf8.clean", "l2one.sixteen"]
    assert jobs["linf8.clean"].start == "clean"
    assert jobs["linf8.clean"].recipe.ball == ball_of("linf8")
    starts = [jobs[name].start for name in ("clean", "l2one", "l2one.sixteen")]
    assert all(isinstance(net, PreActResNet) for net in starts)
    first, same, deeper = starts
    assert torch.equal(first.stem.weight, same.stem.weight)
    assert [len(net.convolutions) for net in starts] == [7, 7, 13]
    assert not torch.equal(first.stem.weight, deeper.stem.weight)


def test_a_training_that_does_not_move_ends_at_its_start():
    """From clean weights: with a vanishing step the net is the clean one, not the random one."""
    bench, still = new_bench(scale="smoke"), replace(TINY, train=64, clean_epochs=1)
    clean = nets_of(still, bench, ("clean",))["clean"]
    images = images_of(still)
    jobs = jobs_of(still, bench, images, ("l2one", "l2one.clean"))
    jobs = {name: replace(job, recipe=replace(job.recipe, step=1e-30)) if "l2one" in name else job
            for name, job in jobs.items()}  # fmt: skip
    found = deep_nets(bench, jobs)
    assert torch.allclose(found["l2one.clean"].stem.weight, clean.stem.weight)
    random = start_net(still, bench, images)
    assert torch.allclose(found["l2one"].stem.weight, random.stem.weight)
    assert not torch.allclose(clean.stem.weight, random.stem.weight)


# measurements


def test_noise_without_an_attack_is_that_of_the_attacker():
    """At grey .5 + .06 noise sigma on each of 16 pixels flips the class with chance Phi(-.06 * 4/sigma)."""
    x, y = grey([0.56] * 4000)
    ball = Ball(2.0, 0.0, 1, 0.5, sigma=0.25, draws=2)
    share = kept_right(Flat().eval(), x, y, ball, seed=3)
    assert set(share.unique().tolist()) == {0.0, 0.5, 1.0}
    expected = 0.5 * math.erfc(-0.06 * 4 / 0.25 / math.sqrt(2))
    assert float(share.mean()) == pytest.approx(expected, abs=0.015)


def test_all_starts_share_their_noise():
    """In a small ball more starts take next to nothing: what noise breaks does not add up."""

    x, y = grey([0.56] * 500)
    ball = Ball(2.0, 0.02, 1, 0.5, random_start=True, sigma=0.25, draws=2)
    once, often = (kept_right(Flat().eval(), x, y, ball, starts=k, seed=1) for k in (1, 5))
    assert (often - once).abs().mean() < 0.05


def test_known_shares_are_not_raised_and_what_is_lost_is_not_attacked():
    x, y = grey([0.9, 0.9, 0.9])
    known = torch.tensor([0.0, 0.5, 1.0])
    found = kept_right(Flat().eval(), x, y, ball_of("linf8"), known=known)
    assert torch.equal(found, known)
    assert torch.equal(known, torch.tensor([0.0, 0.5, 1.0]))


def test_the_strict_attack_breaks_what_can_be_broken_and_says_so():
    """Grey g is broken within linf r exactly where g - r <= 1/2."""
    ball = Ball(math.inf, 0.1, 7, 0.3)
    x, y = grey([0.4, 0.55, 0.58, 0.61, 0.7])
    found = strict(Flat().eval(), x, y, ball, steps=5, restarts=1, queries=5, seed=0)
    assert found.left.tolist() == [False, False, False, True, True]
    assert found.flags == dict.fromkeys(FLAGS, 0.0)


def test_the_strict_attack_flags_masked_gradients():
    """A net that shows no slope: gradients see nothing, and what is broken is broken by chance."""

    class Masked(Flat):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scores = super().forward(x)
            return (20 * scores).round() / 20 + 0 * scores

    x, y = grey([0.9] * 8)
    ball = Ball(math.inf, 0.1, 7, 0.3)
    found = strict(Masked().eval(), x, y, ball, steps=3, restarts=1, queries=3, seed=0)
    assert found.left.all()
    assert found.flags["gradient-vanishes"] == 1.0


def test_perturbations_take_every_step_from_the_image():
    """No random start and no early stop: on a linear net linf perturbations are the corner of the ball."""
    x, y = grey([0.51, 0.8])
    delta = deltas(Flat().eval(), x, y, "linf8", steps=4)
    assert torch.allclose(delta, torch.full_like(delta, -8 / 255), atol=1e-6)


def test_one_row_keeps_the_order_of_attacks_and_leaves_own_as_it_was():
    config = Table(**SMOKE, points=30, strong=20, strong_steps=3, strong_starts=2, strict=10, strict_steps=2,
                   restarts=1, queries=3)  # fmt: skip
    bench = new_bench(scale="smoke")
    net = nets_of(config, bench, ("clean",))["clean"]
    x, y = images_of(config).tested(config.points, "cpu")
    data = table1.rows_of(config, "clean", bench)
    assert data.attacker.values.tolist() == list(EVERY)
    own, strong, hard = (data[name].values for name in ("own", "strong", "strict"))
    assert (strong <= own[:, :20]).all()
    assert np.isnan(hard[2:]).all()
    assert (hard[:2] <= strong[:2, :10]).all()
    assert (own <= 1).all()
    again = kept_right(net, x, y, ball_of("linf8")).numpy()
    assert np.array_equal(own[1], again)
    assert np.array_equal(data.plain.values[0], data.noisy.values[0])  # no noise in linf


def test_a_table_that_was_interrupted_trains_only_the_nets_that_it_lacks(tmp_path, monkeypatch):
    """Rows are parts, kept with the run: they outlive the nets, which another machine need not have."""
    config = Table(**SMOKE | {"train": 64}, attackers=("linf8",), starts=("random",), points=8, strong=4,
                   strong_steps=1, strong_starts=1, strict=2, strict_steps=1, restarts=1, queries=1)  # fmt: skip
    bench = replace(new_bench(scale="smoke"), parts=DiskParts(tmp_path))
    monkeypatch.setenv("TACIT_MODELS", str(tmp_path / "models"))
    first = table1.run(config, bench)
    monkeypatch.setenv("TACIT_MODELS", str(tmp_path / "none"))
    again = table1.run(config, replace(bench, parts=DiskParts(tmp_path)))
    assert again.data.identical(first.data)
    assert not (tmp_path / "none").exists()


def test_layers_of_fewer_neurons_are_filled_up_and_drawn_as_they_are():
    small = Features(**SMOKE | {"train": 64}, layers=(1, 7), neurons=20, steps=2, shown=20)
    outcome = fig10.run(small, new_bench(scale="smoke"))
    assert outcome.data.image.shape[:3] == (2, 2, 20)
    alive = outcome.data.image.notnull().all(("channel", "height", "width")).sum("neuron")
    assert alive.sel(net="robust").values.tolist() == [16, 20]
    assert [claim.n for claim in outcome.claims] == [16, 20]
    left, right = fig10.draw(outcome.data, small).axes[::2]
    assert len(left.images) == len(right.images) == 1


def test_the_chosen_images_are_the_first_that_are_right():
    x, y = grey([0.4, 0.6, 0.3, 0.7, 0.8])
    assert first_right(Flat().eval(), x, y, 2).tolist() == [1, 3]
    with pytest.raises(RunError, match="3 of 5 test images right"):
        first_right(Flat().eval(), x, y, 4)


def test_the_first_convolution_reconstructs_by_its_transpose():
    net = PreActResNet(10, 1)
    features, y = features_in(net), torch.randn(1, 16, 8, 8)
    layer = nn.ConvTranspose2d(16, 3, 3, padding=1, bias=False)
    layer.weight = nn.Parameter(features.weight)
    x = torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        both = (net.stem(x) * y).sum(), (layer(y) * x).sum()
    assert torch.allclose(*both, rtol=1e-4)


# claims on made-up data


def invented(config: Table, shift: float = 0.0) -> xr.Dataset:
    """Rows whose accuracies are the paper's, plus `shift`."""
    rows, nets, attackers = [], [], []
    for net in config.nets:
        for attacker in config.tried_by(net):
            start = net.partition(".")[2]
            printed = CLEAN if net == "clean" else FROM_CLEAN if start == "clean" else RANDOM
            robust, clean = printed[attacker]
            robust = robust if net == "clean" else robust + shift

            def held(share: float, n: int) -> np.ndarray:
                return (np.arange(n) * 0.6180339887 % 1 < share).astype(float)

            linf = attacker.startswith("linf")
            rows.append(
                {
                    "plain": held(clean if net != "clean" else 0.945, config.points),
                    "noisy": held(clean, config.points),
                    "own": held(robust, config.points),
                    "strong": held(max(robust - 0.01, 0), config.strong),
                    "strict": held(max(robust - 0.04, 0), config.strict) * (1 if linf else np.nan),
                    "flags": np.full(len(FLAGS), 0.0 if linf else np.nan),
                }
            )
            nets.append(net)
            attackers.append(attacker)
    dims = {"strong": "few", "strict": "fewer", "flags": "flag"}
    return xr.Dataset(
        {k: (("row", dims.get(k, "point")), np.stack([r[k] for r in rows])) for k in rows[0]},
        coords={"net": ("row", nets), "attacker": ("row", attackers), "flag": list(FLAGS)},
    )


def test_the_papers_own_numbers_hold_and_lower_ones_differ():
    config = Table(sixteen="l2one")
    found = verdicts(list(claims(invented(config), config, new_bench(scale="paper"))))
    ours = {"strong", "strict", "sixteen"}
    assert found == {id: "as predicted" if id in ours else "holds" for id in found}
    assert {"clean", "robust.random", "accuracy.clean", "remark8.1", "flags"} <= set(found)
    low = verdicts(list(claims(invented(config, -0.05), config, new_bench(scale="paper"))))
    assert low["robust.random"] == low["robust.clean"] == "differs"
    assert low["accuracy.random"] == "holds"


def test_rows_that_were_not_run_are_left_out_and_named():
    config = Table(attackers=("linf8", "l2one"), starts=("random",))
    made = {c.id: c for c in claims(invented(config), config, new_bench(scale="paper"))}
    assert [m.id for m in made["robust.random"].members] == ["linf8", "l2one"]
    assert "robust.clean" not in made
    assert made["rows"].verdict == made["remark8.1"].verdict == "not testable here"
    assert made["rows"].reason.startswith(
        "not run here: linf(4/255) from random weights, l2(0.5, 0.12)"
    )
    assert "linf(8/255) from random" not in made["rows"].reason
    assert made["rows"].reason.count("from the clean net") == 4
    assert [m.id for m in made["strict"].members] == ["linf8.random"]


def test_a_resnet_16_brings_the_deeper_net_that_it_is_compared_with():
    config = Table(attackers=("linf8", "l2one"), starts=("clean",), sixteen="l2one")
    assert config.nets == ("clean", "linf8.clean", "l2one.clean", "l2one", "l2one.sixteen")
    assert Table(starts=("random",), sixteen="l2one").nets.count("l2one") == 1
    made = {c.id: c for c in claims(invented(config), config, new_bench(scale="paper"))}
    assert made["sixteen"].verdict == "as predicted"
    assert [m.id for m in made["remark8.1"].members] == ["l2one.robust", "l2one.clean"]
    assert made["remark8.1"].statement.endswith("(tried with l2(1, 0.25) alone)")


def test_a_smaller_net_cannot_judge_the_numbers():
    config = Table(depth=10, side=16, attackers=("linf8",), starts=("random",))
    made = {c.id: c for c in claims(invented(config), config, new_bench())}
    for id in ("clean", "robust.random", "accuracy.random"):
        assert made[id].verdict == "not testable here"
        assert "results/allenzhu2020.table1 has the run at paper scale" in made[id].reason
    assert made["order.robust"].verdict == "holds"


def test_flags_are_counted_and_named():
    config = Table(attackers=("linf8",), starts=("random",))
    data = invented(config)
    data["flags"] = data.flags.where(data.flag != "queries-beat-gradients", 0.2)
    made = {c.id: c for c in claims(data, config, new_bench(scale="paper"))}
    assert made["flags"].measured == 1
    assert "linf(8/255) from random weights: queries-beat-gradients" in made["flags"].reason


def test_stronger_attackers_are_compared_in_pairs():
    config = Attackers(attackers=("linf4", "linf8", "l2half"))
    coarse = {"clean": 0.05, "linf4": 0.2, "linf8": 0.3, "l2half": 0.25}
    noise = np.random.default_rng(0).normal(0, 0.05, (4, 64))
    data = xr.Dataset(
        {"coarse": (("net", "neuron"), np.array(list(coarse.values()))[:, None] + noise)},
        coords={"net": list(coarse)},
    )
    made = {c.id: c for c in fig13_claims(data, config, new_bench())}
    assert [m.id for m in made["each"].members] == ["linf4.clean", "linf8.clean", "l2half.clean"]
    assert [m.id for m in made["stronger"].members] == ["linf8.linf4"]
    assert made["rows"].reason == "not run here: l2(1, 0.25)"
    assert made["each"].verdict == made["stronger"].verdict == "holds"


def test_sparsity_is_judged_in_the_papers_order():
    shares = {"random": 0.3, "clean": 0.2, "robust": 0.1, "clean_delta": 0.3, "robust_delta": 0.1}
    noise = np.random.default_rng(0).normal(0, 0.01, (5, 50))
    base = np.array(list(shares.values()))[:, None] + noise
    data = xr.Dataset(
        {
            "at_error": (("case", "image"), base),
            "regression": ("image", np.full(50, 1e-12)),
            "regressed": ("image", np.ones(50)),
            "solved": (("case", "weight", "image"), np.ones((5, 3, 50))),
        },
        coords={"case": list(shares)},
    )
    right = verdicts(list(fig12_claims(data, Reconstruction(), new_bench())))
    assert set(right.values()) == {"holds"}
    data["at_error"] = -data.at_error
    data["regression"] = data.regression * 1e6
    wrong = verdicts(list(fig12_claims(data, Reconstruction(), new_bench())))
    assert {wrong[id] for id in ("robust", "clean", "delta", "span")} == {"differs"}


def test_pairs_without_a_number_are_left_out():
    more, less = (xr.DataArray([1.0, np.nan, 3.0]), xr.DataArray([0.0, 0.0, 1.0]))
    found = gain(more, less)
    assert found is not None
    assert (found.value, found.n) == (1.5, 2)
    assert gain(more[:2], less[:2]) is None
    assert share_of(np.zeros(100)).high > 0  # none of a hundred is no proof


def test_a_mosaic_has_every_image_in_its_place():
    images = np.arange(5.0)[:, None, None, None] / 5 * np.ones((1, 1, 2, 2))
    sheet = mosaic(images, 3)
    assert sheet.shape == (5, 8, 3)
    assert sheet[0, 3, 0] == pytest.approx(0.2)
    assert sheet[3, 3, 0] == pytest.approx(0.8)
    assert sheet[3, 7, 0] == 1  # an empty place is white
    wide = stretched(np.array([[[[0.4, 0.5]]], [[[0.5, 0.5]]]]), 0.5)
    assert wide.ravel().tolist() == pytest.approx([0.0, 0.5, 0.5, 0.5])
