"""Figures 3 and 6 on scikit-learn's digits, at sizes of seconds."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from scipy.stats import t as student

from benches import Memory, new_bench
from rounding import same_verdicts
from tacit.attack import apgd, cross_entropy
from tacit.attack.losses import margin
from tacit.data.images import load_images
from tacit.errors import CallError, RunError
from tacit.measure import proportion
from tacit.nets import PolyReLUNet
from tacit.papers._shared.crossed import crossed
from tacit.papers.min2024.fig3 import exhibit as fig3
from tacit.papers.min2024.fig3 import figure as fig3_panels
from tacit.papers.min2024.fig3.digits import towards_digits
from tacit.papers.min2024.fig3.settings import EXHIBITS as FIGURES
from tacit.papers.min2024.fig3.settings import RADII, Curves
from tacit.papers.min2024.images import claims as image_claims
from tacit.papers.min2024.images import nets as image_nets
from tacit.papers.min2024.images.settings import ImageNets, regime_of
from tacit.papers.min2024.table1.settings import EXHIBITS as TABLES
from tacit.papers.min2024.table1.settings import Table

EXHIBITS = (*FIGURES, *TABLES)

SMALL = Curves(
    dataset="digits", classes=2, width=40, epochs=12, batch=150, step=0.01, points=40, steps=10, shown=300,
    radius=(0.0, 0.05, 0.1, 0.2), each=8, repeats=2,
)  # fmt: skip


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
    assert (three.points, three.repeats, three.shown, three.p) == (10_000, 10, 50_000, (1, 2, 3, 4))
    assert len(RADII) == 15
    assert (RADII[0], RADII[7], RADII[14]) == (0, 0.1, 0.2)
    assert (table.linf, table.l2, table.l1, table.steps) == ((0.05, 0.1), (1, 2), (5, 10), 100)
    assert (table.classes, table.repeats, table.points) == (10, 10, 10_000)
    assert table.points_l1 == 10_000
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
    again = image_nets.outlived(
        {(1.0, 0): net}, new_bench(), pictures, image_nets.Attack("inf", SMALL.radius, 40), steps=10
    )
    share = image_nets.unbroken(again, SMALL.radius).mean("point")
    np.testing.assert_array_equal(share.sel(p=1.0, seed=0), here)


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


def judged(data, config=SMALL):
    return {claim.id: claim for claim in image_claims.curve_claims(data, config, new_bench())}


def test_the_claims_are_those_of_the_figure(outcome):
    found = judged(outcome.data)
    same = {f"correlation.{id}" for id in ("same", "large", "other", "apart")}
    same |= {"rank.grows", "rank.much"}
    robust = {"robust.p2", "robust.p3", "robust.p4", "robust.much"}
    assert set(found) == same | robust | {
        "clean",
        "digits",
        "digits.share",
        "digits.cosine",
        "raw.falls",
        "raw.ends",
    }
    assert {claim.regime for claim in found.values()} == {
        "other data: digits where the paper has MNIST"
    }
    # of the digits the paper has no word on clean accuracy, and the map is Figure 3's
    six = judged(outcome.data, replace(SMALL, classes=10))
    assert set(six) == same | robust
    assert six["correlation.large"].same_as == "min2024.fig3:correlation.large"
    assert {claim.same_as for id, claim in six.items() if id not in same} == {""}


def test_neurons_at_digits_have_learned_them_and_neurons_at_a_class_mean_have_not(pictures):
    """By hand: means by a loop, cosines by numpy."""
    x = pictures.x.double() - pictures.centre.double()
    digits = torch.stack([x[pictures.kind == k].mean(0) for k in range(10)])
    even = x[pictures.y == 0].mean(0, keepdim=True)
    net = PolyReLUNet(digits.float(), torch.zeros(2, 10), torch.zeros(2), p=1.0)
    other = PolyReLUNet(
        torch.cat([digits[:3], even]).float(), torch.zeros(2, 4), torch.zeros(2), p=3.0
    )
    found = towards_digits({(1.0, 0): net, (3.0, 0): other}, pictures)
    np.testing.assert_allclose(found["digit_cosine"].sel(p=1.0), 1, atol=1e-5)
    u = (digits / digits.norm(dim=1, keepdim=True)).numpy()
    mean = (even / even.norm()).numpy()
    expected = np.concatenate([u[:3], mean]) @ u.T
    np.testing.assert_allclose(found["digit_cosine"].sel(p=3.0)[0], expected.max(0), atol=1e-5)
    assert found["at_digit"].values.ravel().tolist() == [1.0, 0.75]


def test_digits_that_no_neuron_finds_are_not_learned(outcome):
    noise = 1e-3 * np.random.default_rng(0).normal(size=outcome.data.digit_cosine.shape)
    few = outcome.data.digit_cosine * 0 + 0.1 * outcome.data.p + noise
    share = outcome.data.at_digit * 0 + 0.1 * outcome.data.p + noise[..., 0]
    found = judged(outcome.data.assign(digit_cosine=few, at_digit=share))
    assert found["digits"].verdict == "holds"
    assert found["digits.share"].verdict == found["digits.cosine"].verdict == "as predicted"


def every_other(a, shares):
    """Outlived: for each p the first share of 40 points outlives two radii, in each seed."""
    kept = [np.arange(a.sizes["point"]) < share * a.sizes["point"] for share in shares]
    return a.copy(data=2 * np.broadcast_to(np.array(kept)[:, None], a.shape))


@pytest.mark.parametrize(
    ("name", "change", "id"),
    [
        ("correlation", lambda a: -a, "correlation.same"),
        ("correlation", lambda a: a * 0 + 0.2, "correlation.large"),
        ("correlation", lambda a: a * 0 + 0.2, "correlation.other"),
        ("test_accuracy", lambda a: a * 0 + 0.9 - 0.1 * (a.p == 2), "clean"),
        ("stable_rank", lambda a: a * 0 + 1 / a.p, "rank.grows"),
        ("stable_rank", lambda a: a * 0 + 1 + 0.1 * a.p, "rank.much"),
        ("digit_cosine", lambda a: a * 0 + 0.95, "digits"),
        ("at_digit", lambda a: a * 0 + 1 / a.p, "digits.share"),
        ("digit_cosine", lambda a: a * 0 + 1 / a.p, "digits.cosine"),
        ("outlived", lambda a: every_other(a, (0.9, 0.4, 0.9, 0.9)), "robust.p2"),
        ("outlived", lambda a: a * 0 + 2, "robust.much"),
    ],
)
def test_every_claim_can_fail(outcome, name, change, id):
    changed = change(outcome.data[name])
    if name != "outlived":  # values that are all the same have no interval
        noise = np.random.default_rng(0).normal(size=changed.shape)
        changed = changed + 1e-6 * noise
    wrong = outcome.data.assign({name: changed})
    robust = image_nets.unbroken(wrong.outlived, SMALL.radius).mean("point")
    claim = judged(wrong.assign(robust=robust))[id]
    own = id in (
        "correlation.large",
        "correlation.other",
        "rank.much",
        "robust.much",
        "digits.share",
        "digits.cosine",
    )
    assert claim.source == ("ours" if own else "words")
    assert claim.verdict == ("not as predicted" if own else "differs")


def test_what_lies_within_its_interval_is_undecided(outcome):
    """A gain of one point in forty; an edge that one seed has and the other has not."""
    data = outcome.data
    left = every_other(data.outlived, (0.5, 0.525, 0.5, 0.95))
    robust = image_nets.unbroken(left, SMALL.radius).mean("point")
    edge = 0.9 + 0.01 * (data.p > 1) * (data.seed == 0)
    found = judged(
        data.assign(outlived=left, robust=robust, test_accuracy=data.test_accuracy * 0 + edge)
    )
    assert found["robust.p2"].measured == pytest.approx(0.025)
    assert found["robust.p2"].over == "points and seeds"
    assert [found[id].verdict for id in ("robust.p2", "robust.p3", "clean")] == ["undecided"] * 3
    assert found["robust.p4"].verdict == "holds"


def test_one_training_decides_nothing_about_nets(outcome):
    one = outcome.data.sel(seed=[0])
    found = judged(one, replace(SMALL, repeats=1))
    of_nets = [claim for id, claim in found.items() if not id.startswith("correlation")]
    assert {claim.verdict for claim in of_nets} <= {"undecided", "not testable here"}


def test_no_radius_in_the_middle_is_said(outcome):
    data = outcome.data.sel(radius=[0.0]).assign(outlived=outcome.data.outlived.clip(max=1))
    claim = judged(data, replace(SMALL, radius=(0.0,)))["robust.p2"]
    assert claim.verdict == "not testable here"
    assert "--set radius=" in claim.reason


def test_the_regime_is_computed_from_the_settings():
    def said(**changes):
        return regime_of(replace(ImageNets(), **changes), classes=10)

    assert said() == said(epochs=50, points=7, repeats=9) == "inside: MNIST, the released settings"
    assert said(epochs=30) == "shortened: epochs = 30 (51); in brackets as released"
    assert said(epochs=100).startswith("outside: epochs = 100")
    assert said(epochs=30, layer="written").startswith("outside: ")
    assert said(classes=2).startswith("outside: classes = 2 (10)")
    assert said(dataset="digits").startswith("other data: digits")
    for exhibit in FIGURES:
        kinds = {
            scale: regime_of(config, classes=config.classes).partition(":")[0]
            for scale, config in exhibit.scales.items()
        }
        assert kinds == {"smoke": "other data", "laptop": "shortened", "paper": "inside"}


def test_an_interval_has_the_points_and_the_seeds():
    rng = np.random.default_rng(0)
    # every seed the same: the points alone, which are Agresti and Coull's
    share = np.repeat(rng.random((1, 400)) < 0.3, 3, 0)
    found, events = crossed(share, ends=(0.0, 1.0)), int(share[0].sum())
    wilson = binomtest(events, 400).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((wilson.low, wilson.high), abs=1e-3)
    # 0 of n is no proof, all of N is one
    none = np.zeros((2, 50))
    assert crossed(none, ends=(0.0, 1.0)).high > proportion(0, 50).high
    assert crossed(none, 50).high == 0
    # every point the same: the seeds alone, which are Student's
    seeds = np.repeat(np.array([[0.1], [0.4], [0.2]]), 5, 1)
    low, high = student.interval(0.95, 2, loc=seeds.mean(), scale=seeds[:, 0].std(ddof=1) / 3**0.5)
    of_seeds = crossed(seeds, 5)
    assert (of_seeds.low, of_seeds.high) == pytest.approx((low, high))
    one = crossed(seeds[:1], 5)
    assert (one.low, one.high) == (-1, 1)
    known = crossed(seeds[:1], 5, known=0.01)
    assert known.high - known.value == pytest.approx(student.ppf(0.975, 4) * 0.01)
    assert crossed(share, of=28).spread > crossed(share).spread


def test_intervals_cover_what_they_estimate():
    """Points with shares of their own, seeds with shifts of their own: 95% or more of 400 worlds."""
    rng, truth = np.random.default_rng(1), 0.2
    hits = 0
    for _ in range(400):
        point, seed = rng.normal(0, 0.3, 100), rng.normal(0, 0.02, 3)
        values = np.clip(truth + point + seed[:, None] + rng.normal(0, 0.1, (3, 100)), -1, 1)
        found = crossed(values)
        hits += found.low <= truth <= found.high
    assert hits >= 0.93 * 400


def test_the_map_varies_as_its_points(outcome):
    """The interval of a mean over pairs is that of the jackknife over points, not over pairs."""
    data = outcome.data
    label, cosine = data.label.values, data.correlation.values

    def mean(rows):
        pairs = (label[rows][:, None] == label[rows]) & ~np.eye(len(rows), dtype=bool)
        return cosine[np.ix_(rows, rows)][pairs].mean()

    n = len(label)
    left_out = np.array([mean(np.delete(np.arange(n), i)) for i in range(n)])
    jackknife = math.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    claim = judged(data)["correlation.large"]
    assert claim.measured == pytest.approx(mean(np.arange(n)))
    assert claim.spread == pytest.approx(student.ppf(0.975, n - 1) * jackknife, rel=0.1)


def test_the_least_difference_is_that_of_a_loop_over_pairs_and_varies_as_their_points(outcome):
    """Of the two digits that are nearest: means by hand, and the jackknife over the points of both."""
    label, cosine = outcome.data.label.values, outcome.data.correlation.values

    def difference(rows, a, b):
        in_a, in_b = (rows[label[rows] == kind] for kind in (a, b))
        own = cosine[np.ix_(in_a, in_a)][~np.eye(len(in_a), dtype=bool)]
        return own.mean() - cosine[np.ix_(in_a, in_b)].mean()

    n = np.arange(len(label))
    values = {(a, b): difference(n, a, b) for a in range(10) for b in range(10) if a != b}
    claim = judged(outcome.data)["correlation.apart"]
    assert claim.measured == pytest.approx(min(values.values()))
    a, b = min(values, key=values.get)
    square = 0.0
    for kind in (a, b):
        rows = np.flatnonzero(label == kind)
        left_out = np.array([difference(np.delete(n, i), a, b) for i in rows])
        square += (len(rows) - 1) / len(rows) * ((left_out - left_out.mean()) ** 2).sum()
    wide = student.ppf(1 - 0.025 / 90, np.bincount(label).min() - 1)
    assert claim.measured - claim.interval[0] == pytest.approx(wide * math.sqrt(square), rel=0.1)


def test_kinds_that_lie_as_near_to_each_other_as_to_themselves_are_not_apart(outcome):
    """Labels by chance, of the very same points: their mean over pairs of two labels is small all the same."""
    label = outcome.data.label.copy(data=np.random.default_rng(0).permutation(outcome.data.label))
    found = judged(outcome.data.assign(label=label))
    assert found["correlation.apart"].verdict == "undecided"
    assert found["correlation.other"].verdict == "as predicted"
    # two digits that are one
    one = outcome.data.label.copy(data=np.minimum(outcome.data.label, 8))
    rows = np.flatnonzero(one == 8)
    nearer = outcome.data.correlation.copy(deep=True)
    nearer.values[np.ix_(rows[::2], rows[1::2])] = nearer.values[np.ix_(rows[1::2], rows[::2])] = 1
    split = one.copy(deep=True)
    split.values[rows[::2]] = 9
    found = judged(outcome.data.assign(label=split, correlation=nearer))
    assert found["correlation.apart"].verdict == "not as predicted"


def test_gains_are_differences_of_the_robust_accuracies(outcome):
    data = outcome.data
    found = image_claims.gains(data.outlived, SMALL.radius, (1.0, 3.0), 599)
    robust = data.robust.mean("seed")
    values = [gain.value for gain in found]
    np.testing.assert_allclose(values, robust.sel(p=3) - robust.sel(p=1), atol=1e-12)


def test_a_run_that_was_killed_goes_on_and_finds_the_same(outcome, parts):
    own = ["nets-0", "nets-1", "attack-inf-0", "attack-inf-1"]
    assert list(parts) == [*own, "raw-0", "raw-1"]
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
    assert len(figure.axes) == 6 + 30
    # runs that were made before the neurons were looked at, and nets whose classes are the digits, have no (e)
    older = outcome.data.drop_vars(["at_digit", "digit_cosine"])
    assert len(fig3.draw(older, SMALL).axes) == 5 + 30
    assert figure.get_suptitle() == "digits, 2 classes, 12 epochs, layer as released"


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
