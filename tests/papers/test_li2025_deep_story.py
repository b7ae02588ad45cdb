"""li2025.deep_story: the nets of its rows, what is read off them, what is judged in true and in false worlds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

from benches import new_bench, verdicts
from tacit.errors import CallError
from tacit.measure.features import lasso_path, sparsity_at_error, zero_mean
from tacit.measure.features.dictionaries import ConvDictionary
from tacit.nn import PolyHeadResNet18, ResNet18
from tacit.papers._shared.deep import DeepImages
from tacit.papers.allenzhu2020.deep.strict import FLAGS
from tacit.papers.li2025.deep_story.claims import claims, regime_of, too_small
from tacit.papers.li2025.deep_story.effects import (
    comparable,
    kin,
    past_half,
    robust_gain,
    sparser,
    theta_start,
)
from tacit.papers.li2025.deep_story.exhibit import run
from tacit.papers.li2025.deep_story.figure import BETTER, OPEN, WORSE, columns, draw, shade
from tacit.papers.li2025.deep_story.measured import attacked, averages, measured, neurons, without
from tacit.papers.li2025.deep_story.nets import (
    found_labels,
    halves_of,
    images_of,
    recipe_of,
    start_of,
)
from tacit.papers.li2025.deep_story.settings import EVERY, EXHIBITS, PAPER, DeepStory
from tacit.papers.li2025.fig3b.binary import Halves

SMOKE, LAPTOP = (EXHIBITS[0].scales[name] for name in ("smoke", "laptop"))


# ---- the nets


def test_all_rows_start_from_the_same_convolutions():
    images, bench = images_of(SMOKE), new_bench()
    nets = {row: start_of(SMOKE, bench, images, row, 3) for row in EVERY}
    for net in nets.values():
        for mine, other in zip(net.convolutions, nets["two"].convolutions, strict=True):
            assert torch.equal(mine.weight, other.weight)
    assert {row: net.head.out_features for row, net in nets.items()} == {
        "two": 2, "head": 2, "control": 2, "throughout": 2, "ten": 10, "both": 10, "discovered": 10,
        "adversarial": 2,
    }  # fmt: skip
    heads = {row: net.poly.p for row, net in nets.items() if isinstance(net, PolyHeadResNet18)}
    assert heads == {"head": 3, "control": 1, "both": 3}
    assert torch.equal(nets["head"].poly.weight, nets["control"].poly.weight)
    assert {row: net.power for row, net in nets.items() if net.power != 1} == {"throughout": 2}
    other = start_of(SMOKE, bench, images, "two", 4)
    assert not torch.equal(other.stem.weight, nets["two"].stem.weight)


def test_only_adversarial_training_is_attacked_and_all_else_is_alike():
    recipes = {row: recipe_of(PAPER, row) for row in EVERY}
    hard = recipes.pop("adversarial")
    assert len(set(recipes.values())) == 1
    assert recipes["two"].ball is None
    assert replace(hard, ball=None, epochs=12) == recipes["two"]
    assert (hard.ball.norm, hard.ball.radius, hard.ball.steps) == (2.0, 0.25, 7)


def test_halves_are_the_first_five_classes_and_the_last():
    images = images_of(SMOKE)
    two = halves_of(images)
    assert torch.equal(two.y, (images.y >= 5).long())
    assert torch.equal(two.test_y, (images.test_y >= 5).long())


def test_discovered_labels_are_the_planted_subclasses_numbered_half_by_half():
    classes = torch.arange(10).repeat(12)
    stream = torch.Generator().manual_seed(0)
    x = torch.randint(0, 20, (120, 5, 2, 1), generator=stream)
    x[torch.arange(120), classes % 5, classes // 5] += 200
    images = DeepImages(
        "made up", x.to(torch.uint8), classes, x[:2].to(torch.uint8), classes[:2], 255
    )
    found = found_labels(lambda x: x.flatten(1), images, new_bench(), 0).y
    assert torch.equal(found // 5, classes // 5)  # so that logits halve by the paper's rule
    pairs = torch.stack([found, classes], 1).unique(dim=0)
    assert len(pairs) == 10  # one label a class


# ---- what is read off


class Linear(nn.Module):
    """Two logits, linear in the pixels."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.flatten(1) - 0.5) @ self.weight.T


def test_both_attacks_find_the_radius_of_a_linear_rule():
    stream = torch.Generator().manual_seed(1)
    weight = torch.randn(2, 12, generator=stream)
    rule = Halves(Linear(weight)).eval()
    x = 0.5 + 0.05 * torch.randn(60, 3, 2, 2, generator=stream)
    margin = (rule(x)[:, 0] - rule(x)[:, 1]).detach()
    y = (margin < 0).long()
    y[:3] = 1 - y[:3]  # wrong from the start
    radius = margin.abs() / (weight[0] - weight[1]).norm()
    radius[:3] = 0
    config = replace(
        SMOKE,
        radius=(0.3, 0.05, 0.1),
        at=(0.1, 0.05),
        points=60,
        strict=40,
        steps=20,
        strict_steps=20,
    )
    data = attacked(config, rule, x, y, 0)
    assert list(data.radius.values) == [0, 0.05, 0.1, 0.3]
    assert (data.flags.sel(flag="loss-not-increasing") == 0).all()
    for level in data.radius.values[1:]:
        sure = ((radius / level - 1).abs() > 1e-3).numpy()
        kept = data.kept.sel(radius=level).values == 1
        assert (kept == (radius > level).numpy())[sure].all()
    assert data.right.sum() == 57


def test_what_the_strict_attack_breaks_is_broken_at_larger_radii_too():
    kept = torch.ones(3, 4, dtype=torch.bool)
    found = without(kept, torch.tensor([True, False]), 1)
    assert found.tolist() == [[True] * 4, [True, False, True, True], [True, False, True, True]]
    assert kept.all()


def planted(net: nn.Module, collapsed: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Features of ten classes, (n, 512 or less): one place a half, or one orthogonal place a class."""
    classes = torch.arange(10).repeat(30)
    width = net.stem.out_channels * 8
    place = torch.eye(width)[: 2 if collapsed else 10]
    stream = torch.Generator().manual_seed(0)
    noise = 0.01 * torch.randn(300, width, generator=stream)
    return place[classes // 5 if collapsed else classes] + noise, classes


@pytest.mark.parametrize("collapsed", [True, False])
def test_a_head_on_halves_averages_and_one_on_classes_does_not(collapsed, monkeypatch):
    """ETF of ten: cos 1 with its class, 1/3 with its half; a collapsed head has no class to lean to."""
    net = ResNet18(2 if collapsed else 10, 1, 8, torch.Generator().manual_seed(0)).eval()
    features, classes = planted(net, collapsed)
    with torch.no_grad():
        net.head.weight.zero_()
        net.head.weight[:, : len(net.head.weight)] = torch.eye(len(net.head.weight))
        net.head.weight += 7.0  # the same for all labels: no softmax sees it
    monkeypatch.setattr(net, "features", lambda x: features[x[:, 0, 0, 0].long()])
    numbered = torch.arange(300.0).view(-1, 1, 1, 1)
    found = averages(net, numbered, classes, "cpu")
    expected = (1.0, 1.0, 0.0) if collapsed else (1 / 3, 1.0, 1.0)
    for name, value in zip(("to_class", "to_subclass", "apart"), expected, strict=True):
        assert float(found[name]) == pytest.approx(value, abs=0.1), name


def test_a_poly_relu_head_is_read_at_its_hidden_layer():
    net = PolyHeadResNet18(2, 1, 8, hidden=6, generator=torch.Generator().manual_seed(0)).eval()
    x = torch.rand(20, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    w, mass, features = neurons(net, x, "cpu")
    assert torch.equal(w.float(), net.poly.weight)
    lengths = net.poly.weight.norm(dim=1) * net.head.weight.norm(dim=0)
    torch.testing.assert_close(mass.float(), lengths.detach())
    wanted = net.centred(x).detach().double()
    torch.testing.assert_close(features, wanted - wanted.mean(0))


# ---- what is judged, in worlds that are made up


def world(
    shares: dict[str, list[float]],
    *,
    seeds: int = 3,
    points: int = 400,
    clean: dict[str, float] | None = None,
    lean: dict[str, float] | None = None,
    needs: dict[str, float] | None = None,
    kinship: dict[str, float] | None = None,
    noise: float = 0.0,
) -> xr.Dataset:
    """Data in which the first points of each radius are kept, and every number is what it is told to be."""
    rows, stream = list(shares), np.random.default_rng(0)

    def each(told: dict[str, float] | None, usual: float) -> np.ndarray:
        return np.array([(told or {}).get(row, usual) for row in rows])

    def jitter(values: np.ndarray, size: float) -> np.ndarray:
        return values[:, None] + size * stream.standard_normal((len(rows), seeds))

    kept = np.arange(points) < (np.array([[1.0, *shares[row]] for row in rows]) * points)[..., None]
    kept = np.repeat(kept[:, None], seeds, 1)
    if noise:  # a seed's luck: some seeds keep everything that another loses
        kept[1:, :, 1:, : points // 2] = (stream.random((len(rows) - 1, seeds)) < 0.5)[
            ..., None, None
        ]
    right = np.arange(1000) < 1000 * each(clean, 0.9)[:, None]
    leans, aparts = (jitter(each(lean, 0.1), 0.3 if noise else 0.01) for _ in range(2))
    # a filter of each row at an angle from the adversarial one, the other filters far from all of them
    cos = each({"adversarial": 1.0, **(kinship or {})}, 0.5)
    turned = np.clip(jitter(cos, 0.003), 0, 1)
    filters = np.zeros((len(rows), seeds, 2, 4))
    filters[:, :, 0, 0], filters[:, :, 0, 1] = turned, np.sqrt(1 - turned**2)
    filters[:, :, 1, 2] = 1.0
    luck = (0.3 if noise else 0.01) * stream.standard_normal((len(rows), 1, 20))
    need = jitter(each(needs, 0.3), 0.002)[..., None] + luck
    one = ("row", "seed")
    return xr.Dataset(
        {
            "kept": ((*one, "radius", "point"), kept.astype(np.int8)),
            "right": ((*one, "test"), np.repeat(right[:, None], seeds, 1).astype(np.int8)),
            "to_class": (one, np.full(leans.shape, 0.5)),
            "to_subclass": (one, 0.5 + leans),
            "apart": (one, aparts),
            "sparsity": ((*one, "image"), need),
            "solved": (one, np.ones(leans.shape)),
            "rand": (one, np.full(leans.shape, 0.3)),
            "flags": ((*one, "at", "flag"), np.zeros((*leans.shape, 1, len(FLAGS)))),
            "start": ((*one, "filter", "tap"), np.ones_like(filters)),
            "filters": ((*one, "filter", "tap"), filters),
        },
        coords={
            "row": rows,
            "seed": range(seeds),
            "radius": [0.0, 0.1, 0.2, 0.3],
            "flag": list(FLAGS),
            "at": [0.1],
        },
    )


TWO = [0.5, 0.2, 0.0]
HARD = [0.9, 0.8, 0.6]
SHARES = {"two": TWO, "head": [0.8, 0.6, 0.4], "ten": [0.8, 0.6, 0.4], "adversarial": HARD}


def judged(data: xr.Dataset, config: DeepStory = PAPER) -> dict[str, str]:
    return verdicts(tuple(claims(data, config, new_bench(scale="paper"))))


def test_in_a_world_where_all_do_the_same_every_claim_says_so():
    data = world(
        SHARES,
        clean={"adversarial": 0.8},
        lean=dict.fromkeys(("head", "ten", "adversarial"), 0.6),
        needs=dict.fromkeys(("head", "ten", "adversarial"), 0.2),
        kinship=dict.fromkeys(("head", "ten"), 0.9),
    )
    found = judged(data)
    assert found.pop("robust.ten") == "holds"
    checks = {found.pop("flags"), found.pop("solved")}
    assert checks == {"holds"}
    assert set(found.values()) == {"as predicted"}
    assert sum(id.startswith("same.") for id in found) == 2
    assert len(found) == 3 * 4 - 1 + 2


def test_in_a_world_where_nothing_helps_but_adversarial_training_every_claim_says_so():
    worse = [0.4, 0.1, 0.0]
    data = world(
        {"two": TWO, "head": worse, "ten": worse, "adversarial": HARD},
        clean={"head": 0.85, "ten": 0.85},
        lean={"head": -0.3, "ten": -0.3, "adversarial": -0.3},
        needs={"head": 0.4, "ten": 0.4, "adversarial": 0.4},
        kinship={"head": 0.1, "ten": 0.1},
    )
    found = judged(data)
    assert found.pop("robust.adversarial") == "as predicted"
    assert found.pop("robust.ten") == "differs"
    del found["flags"], found["solved"]
    assert set(found.values()) == {"not as predicted"}


def test_in_a_world_of_luck_nothing_is_decided():
    found = judged(world({**SHARES, "head": TWO, "ten": TWO}, noise=1.0))
    for id in ("robust.head", "robust.ten", "averages.head", "averages.ten", "purer.ten"):
        assert found[id] == "undecided", id


def test_more_robust_but_not_by_half_is_not_the_same_thing():
    data = world({"two": TWO, "ten": [0.6, 0.3, 0.1], "adversarial": HARD}, kinship={"ten": 0.9})
    found = judged(data)
    assert found["robust.ten"] == "holds"
    assert found["same.ten"] == "not as predicted"
    assert past_half(data, "ten").value == pytest.approx(0.1 - (1.6 / 3) / 2)


def test_a_gain_with_other_filters_is_not_the_same_thing():
    data = world({"two": TWO, "ten": HARD, "adversarial": HARD}, kinship={"ten": 0.1})
    assert judged(data)["same.ten"] == "not as predicted"


def test_what_a_larger_head_gains_is_not_the_gain_of_its_power():
    """The control promises nothing itself; the head is judged against it."""
    for control, verdict in ((TWO, "as predicted"), ([0.9, 0.8, 0.6], "not as predicted")):
        found = judged(world({**SHARES, "control": control}))
        assert found["power"] == verdict
        assert not any(id.endswith(".control") for id in found)
    assert "power" not in judged(world(SHARES))


def test_masked_gradients_are_named():
    data = world(SHARES)
    data["flags"][1, 0, 0, FLAGS.index("gradient-vanishes")] = 0.4
    (flags,) = (c for c in claims(data, PAPER, new_bench(scale="paper")) if c.id == "flags")
    assert flags.verdict == "differs"
    assert flags.reason == "head: gradient-vanishes (40.0%)"


def test_without_an_adversarial_row_nothing_is_compared_with_it():
    found = judged(world({"two": TWO, "ten": HARD}))
    assert not any(id.startswith("same.") for id in found)
    assert found["robust.ten"] == "holds"


# ---- where nothing can be judged


def test_small_nets_on_cifar10_decide_nothing_and_say_what_would():
    data = world(SHARES)
    small = replace(PAPER, width=8, side=16)
    assert too_small(small)
    assert not too_small(PAPER)
    for claim in claims(data, small, new_bench()):
        if claim.source != "check":
            assert claim.verdict == "not testable here", claim.id
            assert "--scale paper" in claim.reason


def test_one_training_of_each_kind_decides_nothing_but_the_checks():
    data = world(SHARES, seeds=1)
    found = judged(data, LAPTOP)
    for id, verdict in found.items():
        of_trainings = id not in ("flags", "solved")
        assert (verdict == "not testable here") == of_trainings, id


def test_radii_that_leave_nothing_to_compare_are_left_out():
    data = world({"two": [1.0, 0.5, 0.0], "ten": [1.0, 0.7, 0.0]})
    assert comparable(data, "ten") == [0.2]
    assert robust_gain(data, "ten").value == pytest.approx(0.2)
    nothing = world({"two": [0.0] * 3, "ten": [0.0] * 3})
    assert robust_gain(nothing, "ten") is None
    assert judged(nothing)["robust.ten"] == "not testable here"


def test_images_whose_paths_end_early_are_left_out_in_pairs():
    data = world(SHARES, needs={"ten": 0.2})
    whole = sparser(data, "ten").value
    data["sparsity"][list(SHARES).index("ten"), 0, :5] = np.nan
    assert sparser(data, "ten").value == pytest.approx(whole, abs=0.01)
    assert sparser(data, "ten").n == 3 * 15
    data["sparsity"][:] = np.nan
    assert sparser(data, "ten") is None
    assert judged(data)["purer.ten"] == "not testable here"


def test_sparsity_is_that_of_paths_in_float64_of_the_filters_that_are_kept():
    """From the kept filters it can be computed again, by who has them alone."""
    found = measured(SMOKE, new_bench(), "two", 0)
    x, _ = images_of(SMOKE).tested(SMOKE.images, "cpu")
    filters = torch.from_numpy(found.filters.values).view(-1, 1, 3, 3)
    path = lasso_path(
        ConvDictionary(filters, 1, 1),
        zero_mean(x.double()),
        lambdas=SMOKE.lambdas,
        least=SMOKE.least,
    )
    again = sparsity_at_error(path, SMOKE.error).numpy()
    np.testing.assert_allclose(found.sparsity.values, again, rtol=1e-9)
    assert float(found.solved) == float(path.solved.double().mean())


def test_regimes():
    assert regime_of(PAPER).startswith("shortened: 12 epochs clean, 8 adversarial, 3 trainings")
    assert "width = 8 (64)" in regime_of(replace(PAPER, width=8))
    assert regime_of(LAPTOP).startswith("other data: mnist")


# ---- filters


def test_kin_is_by_the_nearest_filter_whatever_their_order_and_sign():
    data = world(SHARES, kinship={"ten": 0.9})
    shuffled = data.copy(deep=True)
    shuffled["filters"][list(SHARES).index("ten")] = -data.filters.sel(row="ten")[:, ::-1].values
    xr.testing.assert_allclose(kin(shuffled), kin(data))
    found = kin(data).mean("seed")
    assert float(found.sel(row="adversarial")) == pytest.approx(1.0)
    assert float(found.sel(row="ten")) == pytest.approx((0.9 + 1) / 2, abs=0.01)


def test_theta_with_the_start_has_neither_sign_nor_length():
    data = world(SHARES)
    data["start"] = -3 * data.filters
    assert theta_start(data).values == pytest.approx(1.0)
    data["start"] = data.filters.roll(tap=2)  # orthogonal
    assert theta_start(data).values == pytest.approx(0.0)


# ---- the figure


def test_the_table_is_green_where_a_row_is_better_and_white_where_nobody_knows():
    data = world(SHARES, lean={"ten": 0.6, "head": -0.4}, needs={"ten": 0.2, "head": 0.4})
    told = columns(data)
    assert len(told) == 7
    for name in ("neurons: cosine with\nclass less half", "coefficients that\nimages need"):
        change = told[name][1]
        shades = [shade(change, data, row) for row in ("two", "head", "ten")]
        assert shades == [OPEN, WORSE, BETTER], name
    once = world(SHARES, seeds=1, lean={"ten": 0.6})
    change = columns(once)["neurons: cosine with\nclass less half"][1]
    assert shade(change, once, "ten") == OPEN


def test_it_is_drawn_with_any_rows():
    for shares in (SHARES, {"two": TWO, "ten": HARD}):
        figure = draw(world(shares), replace(PAPER, rows=tuple(shares)))
        legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        assert len(legend) == len(shares)


# ---- what is refused


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"rows": ("ten", "head")}, "two"),
        ({"rows": ("two",)}, "another"),
        ({"rows": ("two", "ten", "ten")}, "rows"),
        ({"radius": ()}, "radius"),
        ({"radius": (0.1, 0.1)}, "radius"),
        ({"at": (0.12,)}, "at=0.12: it is one of radius"),
        ({"at": ()}, "at: give"),
        ({"strict": 2000}, "strict"),
        ({"width": 4}, "width"),
        ({"power": 0}, "power"),
        ({"hard_epochs": 0}, "hard_epochs"),
        ({"ball": 0.0}, "ball"),
        ({"images": 1}, "images"),
        ({"error": 1.0}, "error"),
        ({"repeats": 0}, "repeats"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changed, named):
    with pytest.raises(CallError, match=named):
        DeepStory(**changed)


@pytest.mark.parametrize(
    ("changed", "told"),
    [({"points": 600}, "599"), ({"images": 600}, "599"), ({"side": 3}, "divisor")],
)
def test_what_the_images_do_not_have_is_refused_before_any_training(changed, told):
    with pytest.raises(CallError, match=told):
        run(replace(SMOKE, **changed), new_bench())
