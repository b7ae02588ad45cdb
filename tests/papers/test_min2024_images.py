"""Figures 3 and 6 on scikit-learn's digits, at sizes of seconds."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import t as student

from benches import Memory, new_bench, verdicts
from rounding import same_verdicts
from tacit.attack import apgd, cross_entropy
from tacit.attack.losses import margin
from tacit.data.images import load_images
from tacit.errors import CallError, RunError
from tacit.nets import PolyReLUNet
from tacit.papers.min2024.fig3 import exhibit as fig3
from tacit.papers.min2024.fig3 import figure as fig3_panels
from tacit.papers.min2024.fig3.settings import EXHIBITS as FIGURES
from tacit.papers.min2024.fig3.settings import RADII, Curves
from tacit.papers.min2024.images import claims as image_claims
from tacit.papers.min2024.images import nets as image_nets
from tacit.papers.min2024.images.settings import ImageNets
from tacit.papers.min2024.table1.settings import EXHIBITS as TABLES
from tacit.papers.min2024.table1.settings import Table

EXHIBITS = (*FIGURES, *TABLES)

SMALL = Curves(
    dataset="digits",
    classes=2,
    width=40,
    epochs=12,
    batch=150,
    step=0.01,
    points=40,
    steps=10,
    shown=300,
    radius=(0.0, 0.05, 0.1, 0.2),
    each=8,
    repeats=2,
)


@pytest.fixture(scope="module", autouse=True)
def few_changes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fig3, "CHANGES", (0.0, 0.1, 0.3))
        yield


@pytest.fixture(scope="module")
def parts():
    return Memory()


@pytest.fixture(scope="module")
def outcome(parts):
    return fig3.run(SMALL, new_bench(parts))


@pytest.fixture(scope="module")
def pictures():
    return image_nets.pictures_of("digits", 2)


def test_the_catalogue_has_the_papers_sizes():
    three, six, table = (exhibit.scales["paper"] for exhibit in EXHIBITS)
    assert (three.dataset, three.width, three.epochs, three.batch, three.step) == (
        "mnist",
        500,
        51,
        1000,
        1e-3,
    )
    assert replace(three, classes=10) == six
    assert (three.points, three.repeats, three.shown, three.p) == (10_000, 5, 50_000, (1, 2, 3, 4))
    assert len(RADII) == 15
    assert (RADII[0], RADII[7], RADII[14]) == (0, 0.1, 0.2)
    assert (table.linf, table.l2, table.l1, table.steps) == ((0.05, 0.1), (1, 2), (5, 10), 100)
    assert (table.classes, table.repeats, table.points) == (10, 5, 10_000)
    assert table.points_l1 >= 2000
    assert {e.scales["smoke"].dataset for e in EXHIBITS} == {"digits"}
    assert EXHIBITS[2].scales["laptop"].epochs == 51


def test_labels_are_taken_modulo_the_classes_and_the_centre_is_the_training_mean(pictures):
    train, test = (load_images("digits", part) for part in ("train", "test"))
    np.testing.assert_array_equal(pictures.y.numpy(), train.y % 2)
    np.testing.assert_array_equal(pictures.test_y.numpy(), test.y % 2)
    np.testing.assert_array_equal(pictures.test_kind.numpy(), test.y)
    np.testing.assert_allclose(pictures.centre.numpy(), (train.x / 16).mean(0).ravel(), atol=1e-6)
    assert pictures.shape == (8, 8, 1)


def test_correlations_are_numpys(pictures, outcome):
    train = load_images("digits", "train")
    x = train.x.reshape(len(train.x), -1) / 16
    rows = np.concatenate([np.flatnonzero(train.y == k)[:8] for k in range(10)])
    c = x[rows] - x.mean(0)
    size = np.linalg.norm(c, axis=1)
    np.testing.assert_allclose(outcome.data.correlation, c @ c.T / np.outer(size, size), atol=1e-5)
    np.testing.assert_array_equal(outcome.data.label, train.y[rows])
    few = fig3.correlations(replace(pictures, kind=pictures.kind.clamp(max=1)), 10_000)
    assert len(few["label"]) == len(train.x)  # all there are, where fewer were asked for


def test_curves_are_what_an_svd_and_numpy_find_in_the_saved_nets(outcome, pictures):
    end = outcome.data.isel(epoch=-1).sel(seed=0)
    for p in SMALL.p:
        net = outcome.nets[f"p{p:g}-seed0"]
        hidden = net.hidden(pictures.x[:300]).double().numpy()
        values = np.linalg.svd(hidden, compute_uv=False)
        assert float(end.stable_rank.sel(p=p)) == pytest.approx(
            (values**2).sum() / values[0] ** 2, rel=1e-5
        )
        for name, x, y in (
            ("train_accuracy", pictures.x[:300], pictures.y[:300]),
            ("test_accuracy", pictures.test_x, pictures.test_y),
        ):
            right = (net(x).argmax(1) == y).double().mean()
            assert float(end[name].sel(p=p)) == pytest.approx(float(right), abs=1e-6)
    assert outcome.data.epoch.values.tolist() == list(range(13))


def test_a_tie_is_an_error(pictures):
    flat = PolyReLUNet(torch.zeros(1, 3, 64), torch.zeros(1, 2, 3), torch.zeros(1, 2))
    assert image_nets.accuracy(
        [flat], flat.prepared(pictures.test_x), pictures.test_y
    ).tolist() == [[0.0]]


def test_robust_accuracy_is_that_of_one_attack_a_radius(outcome, pictures):
    data = outcome.data
    x, y = pictures.test_x[:40], pictures.test_y[:40]
    net = outcome.nets["p1-seed0"]
    clean = float((net(x).argmax(1) == y).double().mean())
    assert float(data.robust.sel(p=1, seed=0, radius=0)) == pytest.approx(clean)
    first = apgd(
        net,
        x,
        y,
        (0.05,),
        norm="inf",
        box=(0.0, 1.0),
        loss=cross_entropy,
        starts=("random",),
        steps=10,
    )
    here = data.robust.sel(p=1, seed=0)
    # another stream of random starts: a point or two may differ
    assert float(here.sel(radius=0.05)) == pytest.approx(float(first.robust_accuracy[0]), abs=0.05)
    assert (data.robust.diff("radius") <= 0).all()
    again = image_nets.attacked(
        {(1.0, 0): net}, new_bench(), pictures, image_nets.Attack("inf", SMALL.radius, 40), steps=10
    )
    np.testing.assert_array_equal(again.sel(p=1.0, seed=0), here)


def test_pictures_are_broken_within_what_is_told(outcome, pictures):
    data = outcome.data
    shown, needed = data.picture.values, data.needed.values
    assert shown.shape == (3, 10, 8, 8, 1)
    assert (needed[0] == 0).all()
    assert (shown >= -1e-6).all()
    assert (shown <= 1 + 1e-6).all()
    originals = torch.from_numpy(shown[0].reshape(10, 64))
    rows = [int((pictures.test_x == row).all(1).nonzero()[0]) for row in originals]
    assert pictures.test_kind[rows].tolist() == list(range(10))
    for version, p in ((1, 1.0), (2, 4.0)):
        net = outcome.nets[f"p{p:g}-seed0"]
        scores = net(torch.from_numpy(shown[version].reshape(10, 64)))
        gap = margin(scores, pictures.test_y[rows])
        found = torch.from_numpy(needed[version] < math.inf)
        # the attack saw these points in another batch: sums of 64 pixels, then of the neurons
        assert same_verdicts(found, gap <= 0, gap, terms=64 + SMALL.width)
        size = np.abs(shown[version] - shown[0]).reshape(10, -1).max(1)
        assert (size <= np.minimum(needed[version], max(fig3.CHANGES)) * (1 + 1e-4) + 1e-6).all()


def test_digits_by_parity_gain_by_p(outcome):
    found = verdicts(outcome.claims)
    sure = [
        "correlation.same",
        "correlation.other",
        "correlation.gap",
        "rank.p2",
        "robust.p2",
        "robust.much",
    ]
    rest = [
        "clean.p2",
        "clean.p3",
        "clean.p4",
        "rank.p3",
        "rank.p4",
        "rank.much",
        "robust.p3",
        "robust.p4",
    ]
    assert [id for id in sure if found[id] != "holds"] == []
    assert set(found) == {*sure, *rest}


@pytest.mark.parametrize(
    ("name", "change", "id"),
    [
        ("correlation", lambda a: -a, "correlation.same"),
        ("correlation", lambda a: a * 0 + 0.2, "correlation.other"),
        ("correlation", lambda a: -a, "correlation.gap"),
        ("test_accuracy", lambda a: a - 0.1 * (a.p == 2), "clean.p2"),
        ("stable_rank", lambda a: a * 0 + 1 / a.p, "rank.p2"),
        ("stable_rank", lambda a: a * 0 + 1 + 0.1 * a.p, "rank.much"),
        ("outlived", lambda a: a.copy(data=a.values[::-1]), "robust.p2"),
        ("outlived", lambda a: a * 0 + 2, "robust.much"),
    ],
)
def test_every_claim_can_fail(outcome, name, change, id):
    wrong = outcome.data.assign({name: change(outcome.data[name])})
    assert verdicts(image_claims.curve_claims(wrong, SMALL, new_bench()))[id] == "differs"


def test_no_radius_in_the_middle_is_said(outcome):
    data = outcome.data.sel(radius=[0.0]).assign(outlived=outcome.data.outlived.clip(max=1))
    made = image_claims.curve_claims(data, replace(SMALL, radius=(0.0,)), new_bench())
    (claim,) = (c for c in made if c.id == "robust.p2")
    assert claim.verdict == "not testable here"
    assert "--set radius=" in claim.reason


def test_half_widths_are_those_of_sampling_without_replacement():
    assert image_claims.sampling_error(0.3, 100, 100) == 0
    # the variance of the share of n drawn out of N, exactly: hypergeometric
    from scipy.stats import hypergeom

    exact = 1.96 * hypergeom(1000, 300, 50).std() / 50
    assert image_claims.sampling_error(0.3, 50, 1000) == pytest.approx(exact)
    values = np.array([0.1, 0.4, 0.2])
    low, high = student.interval(
        0.95, 2, loc=values.mean(), scale=values.std(ddof=1) / math.sqrt(3)
    )
    assert 2 * float(image_claims.seed_error(values)) == pytest.approx(high - low)
    assert image_claims.mean_and_spread(np.array([0.4])) == (0.4, None)


def test_gains_are_differences_of_the_robust_accuracies(outcome):
    data = outcome.data
    found = image_claims.gains(data.outlived, SMALL.radius, (1.0, 3.0), 599)
    robust = data.robust.mean("seed")
    np.testing.assert_allclose(found.value, robust.sel(p=3) - robust.sel(p=1), atol=1e-12)
    np.testing.assert_allclose(found.level, (robust.sel(p=3) + robust.sel(p=1)) / 2, atol=1e-12)
    assert (found.half >= 0).all()


def test_a_run_that_was_killed_goes_on_and_finds_the_same(outcome, parts):
    assert list(parts) == ["nets-0", "nets-1", "attack-inf-0", "attack-inf-1"]
    done = Memory({name: parts[name].copy(deep=True) for name in ("nets-0", "attack-inf-0")})
    done["attack-inf-0"]["outlived"] *= 0
    again = fig3.run(SMALL, new_bench(done))
    assert (again.data.outlived.sel(seed=0) == 0).all()
    assert again.data.outlived.sel(seed=1).identical(outcome.data.outlived.sel(seed=1))
    assert again.data.stable_rank.identical(outcome.data.stable_rank)


def test_other_data_are_announced_and_mnist_is_not(outcome):
    said: list[str] = []
    fig3.run(replace(SMALL, epochs=1, repeats=1, points=5, steps=1), new_bench(said=said))
    assert len(said) == 1
    assert "digits" in said[0]
    assert image_claims.other_data(ImageNets(), new_bench()) is None
    assert image_claims.other_data(SMALL, new_bench(scale="smoke")) is None


def test_the_layer_as_written_trains_too():
    config = replace(SMALL, layer="written", epochs=4, repeats=1, points=5, steps=2, classes=10)
    found = fig3.run(config, new_bench())
    assert all(net.unit and not net.normalize_input for net in found.nets.values())
    assert float(found.data.test_accuracy.sel(p=2, seed=0).isel(epoch=-1)) > 0.5


def test_more_points_batches_and_shown_points_than_there_are():
    config = replace(
        SMALL, epochs=1, repeats=1, batch=10_000, points=10_000, steps=1, shown=10**6, classes=10
    )
    data = fig3.run(config, new_bench()).data
    assert data.sizes["point"] == data.attrs["test_points"] == 599


def test_the_figure_can_be_drawn(outcome):
    figure = fig3.draw(outcome.data, SMALL)
    assert len(figure.axes) == 5 + 30
    assert figure.get_suptitle() == "digits, 2 classes, layer as released"


def test_labels_are_pushed_apart_no_farther_than_needed():
    apart = fig3_panels.apart
    assert apart(np.array([3.0, 1.0, 9.0]), 1.0).tolist() == [3, 1, 9]
    np.testing.assert_allclose(apart(np.array([5.0, 5.2, 9.0]), 1.0), [4.6, 5.6, 9.0])
    np.testing.assert_allclose(apart(np.array([2.0, 2.0, 2.0]), 1.0), [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: ImageNets(p=(0.5,)), "p >= 1"),
        (lambda: ImageNets(classes=1), "at least 2"),
        (lambda: ImageNets(width=0), "positive"),
        (lambda: Curves(radius=(-0.1,)), "at least 0"),
        (lambda: Curves(radius=(0.1, 0.1)), "each value once"),
        (lambda: Curves(each=1), "at least 2"),
        (lambda: Table(l2=(0.0,)), "positive"),
        (lambda: Table(points_l1=0), "positive"),
        (lambda: image_nets.pictures_of("digits", 11), "has 10"),
    ],
)
def test_settings_without_meaning_are_refused(make, match):
    with pytest.raises(CallError, match=match):
        make()


def test_a_data_set_that_is_absent_is_told(monkeypatch, tmp_path):
    def absent(name, part="train"):
        raise RunError(f"{name}: no local copy")

    monkeypatch.setattr(image_nets, "load_images", absent)
    with pytest.raises(RunError, match="no local copy"):
        fig3.run(replace(SMALL, dataset="mnist"), new_bench())
