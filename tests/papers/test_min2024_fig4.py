"""min2024.fig4: features of digits, of a folder and of files; nets and attacks against plain numpy."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from benches import new_bench, verdicts
from rounding import same_verdicts
from tacit.attack.losses import margin
from tacit.data.features import make_extractor, named_extractor
from tacit.data.images import ImageFolder, Images, load_images, present
from tacit.errors import CallError, RunError
from tacit.papers._shared import embeddings
from tacit.papers._shared.embeddings import (
    Chosen,
    Sets,
    balanced,
    class_means,
    embeddings_of,
    split,
)
from tacit.papers._shared.frozen import Frozen
from tacit.papers.min2024.fig4 import exhibit as fig4
from tacit.papers.min2024.fig4.claims import claims
from tacit.papers.min2024.fig4.settings import EXHIBITS, SMOKE, FeatureNets, regime_of
from tacit.papers.min2024.images.nets import unbroken

TINY = replace(SMOKE, train=200, width=30, points=30, p=(1.0, 3.0))


@pytest.fixture(scope="module")
def outcome():
    """A run on digits."""
    return fig4.run(TINY, new_bench())


def write_folder(root, sizes, side=9):
    """Images of one grey each: 20 times the class, plus the number of the image."""
    for label, count in enumerate(sizes):
        folder = root / f"{label + 1:03d}.kind{label}"
        folder.mkdir(parents=True)
        for i in range(count):
            grey = np.full((side, side + 2, 3), 20 * label + i, np.uint8)
            Image.fromarray(grey).save(folder / f"{i:04d}.png")


@given(
    sizes=st.lists(st.integers(1, 9), min_size=2, max_size=5),
    count=st.integers(1, 60),
    seed=st.integers(0, 99),
)
def test_a_choice_is_balanced_as_far_as_the_classes_last(sizes, count, seed):
    y = np.repeat(np.arange(len(sizes)), sizes)
    rows = balanced(y, count, torch.Generator().manual_seed(seed))
    assert len(rows) == len(set(rows.tolist())) == min(count, len(y))
    taken = np.bincount(y[rows], minlength=len(sizes))
    assert all(n == size or n >= taken.max() - 1 for n, size in zip(taken, sizes, strict=True))
    # the first rows are balanced too: any prefix is the choice of a smaller count
    some = balanced(y, (count + 1) // 2, torch.Generator().manual_seed(seed))
    assert rows[: len(some)].tolist() == some.tolist()


@given(
    sizes=st.lists(st.integers(2, 12), min_size=2, max_size=4),
    train=st.integers(1, 40),
    test=st.integers(1, 40),
    seed=st.integers(0, 99),
)
def test_the_two_parts_of_one_set_share_no_image_and_every_class_has_some_in_both(
    sizes, train, test, seed
):
    y = np.repeat(np.arange(len(sizes)), sizes)
    first, second = split(y, train, test, torch.Generator().manual_seed(seed))
    assert not set(first.tolist()) & set(second.tolist())
    assert len(first) <= train
    assert len(second) <= test
    for rows, wanted in ((first, train), (second, test)):
        assert wanted < len(sizes) or set(y[rows]) == set(range(len(sizes)))


def test_chosen_rows_stream_in_full_batches():
    whole = load_images("digits", "test")
    rows = np.array([3, 4, 50, 51, 52, 200, 590])
    some = Chosen(whole, rows)
    got = list(some.batches(3))
    assert [len(x) for x, _ in got] == [3, 3, 1]
    assert np.array_equal(np.concatenate([x for x, _ in got]), whole.x[rows])
    assert np.array_equal(np.concatenate([y for _, y in got]), whole.y[rows])
    assert (len(some), some.top, some.classes) == (7, 16, whole.classes)
    other = Chosen(whole, rows + 1)
    assert some.fingerprint() != other.fingerprint() != whole.fingerprint()


def test_features_of_digits_are_their_pixels_with_their_own_labels(bench):
    found = embeddings_of(TINY, bench)
    whole = load_images("digits", "train")
    pixels, labels = whole.pixels().numpy(), whole.y
    known = {row.tobytes(): int(y) for row, y in zip(pixels, labels, strict=True)}
    for row, y in zip(found.train.x.numpy(), found.train.y.tolist(), strict=True):
        assert known[row.tobytes()] == y
    assert torch.bincount(found.train.y).tolist() == [20] * 10
    assert sorted(found.train.y[:10].tolist()) == list(range(10))


def test_a_folder_of_images_is_read_and_split(bench, tmp_path):
    write_folder(tmp_path / "256_ObjectCategories", [8, 6, 4])
    config = Frozen(str(tmp_path / "256_ObjectCategories"), "pixels", size=4, train=9, test=3)
    found = embeddings_of(config, bench)
    assert found.train.x.shape == (9, 48)
    assert found.classes == 3
    assert torch.bincount(found.test.y).tolist() == [1, 1, 1]
    for part in (found.train, found.test):
        assert ((part.x * 255 / 20).floor()[:, 0].long() == part.y).all()
    assert config.named == "256_ObjectCategories by pixels"
    with pytest.raises(CallError, match="size=32"):
        embeddings_of(replace(config, size=None), bench)
    assert len(ImageFolder(config.dataset, 4)) == 18
    (tmp_path / "256_ObjectCategories" / "001.kind0" / "RENAME2").write_text("no image")
    with pytest.raises(RunError, match="--set skip_unreadable=true"):
        embeddings_of(config, bench)
    lines = []
    again = embeddings_of(replace(config, skip_unreadable=True), replace(bench, say=lines.append))
    assert "1 files of" in lines[0]
    assert "left out" in lines[0]
    assert torch.equal(again.train.x, found.train.x)


def test_a_path_that_does_not_exist_is_told_first(bench, tmp_path):
    for name in ("nowhere", "nowhere.npz"):
        config = Frozen(str(tmp_path / name), "no extractor at all")
        with pytest.raises(CallError, match=r"nowhere.*: this path does not exist"):
            embeddings_of(config, bench)


def test_a_file_of_features_is_split_and_gets_the_papers_ten_superclasses(bench, tmp_path):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(24, 12))
    y = np.repeat(np.arange(24), 10)
    np.savez(tmp_path / "f.npz", x=centres[y] + 0.1 * rng.normal(size=(240, 12)), y=y)
    config = replace(TINY, dataset=str(tmp_path / "f.npz"), train=160, test=80, p=(1.0, 2.0))
    outcome = fig4.run(config, bench)
    assert outcome.data.attrs["superclasses"] == 10
    assert outcome.nets["p2-seed0"].v.shape == (10, 30)
    assert outcome.data.sizes["map_row"] == 20 * 5  # the first 20 classes
    assert len(fig4.draw(outcome.data, config).axes) == 5
    with pytest.raises(CallError, match="superclasses=30"):
        fig4.run(replace(config, superclasses=30), bench)


def test_class_means_are_means():
    x, y = torch.arange(12.0).reshape(4, 3), torch.tensor([0, 1, 0, 1])
    assert class_means(x, y).tolist() == [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]


def test_curves_and_attacks_agree_with_plain_numpy(bench, outcome):
    found = embeddings_of(TINY, bench)
    data, x, centre = outcome.data, found.test.x.double(), found.train.x.double().mean(0)
    for p in TINY.p:
        net = outcome.nets[f"p{p:g}-seed0"]
        w, v, b = (t.double() for t in (net.w, net.v, net.b))

        def logits(z, w=w, v=v, b=b, p=p):
            c = z - centre
            z = np.maximum((c @ w.T).numpy(), 0) ** p / (w.norm(dim=1) ** (p - 1)).numpy()
            return z / (c.norm(dim=1, keepdim=True) ** (p - 1)).numpy() @ v.T.numpy() + b.numpy()

        scores, label = logits(x), (found.test.y % 2).numpy()
        right = scores.argmax(1) == label
        assert right.mean() == pytest.approx(float(data.test_accuracy.sel(p=p)[-1, 0]), abs=0.011)
        # at radius 0 an attack does nothing
        gap = margin(torch.from_numpy(scores), torch.from_numpy(label))[: TINY.points].float()
        kept = torch.from_numpy(data.outlived.sel(p=p).values[0] > 0)
        assert same_verdicts(kept, gap > 0, gap, terms=x.shape[1] + len(w))  # float32's
        shown = found.train.x[: TINY.shown].double()
        c = shown - centre
        hidden = np.maximum((c @ w.T).numpy(), 0) ** p / (w.norm(dim=1) ** (p - 1)).numpy()
        hidden /= (c.norm(dim=1, keepdim=True) ** (p - 1)).numpy()
        values = np.linalg.svd(hidden, compute_uv=False)
        rank = (values**2).sum() / values[0] ** 2
        assert float(data.stable_rank.sel(p=p)[-1, 0]) == pytest.approx(rank, rel=1e-4)


def test_robust_accuracy_falls_with_the_radius_and_the_stronger_attack_is_no_weaker(outcome):
    robust = outcome.data.robust
    assert (robust.diff("radius") <= 0).all()
    # one point may be found by chance
    strict = outcome.data.strict.mean("point")
    assert (strict <= robust.isel(radius=-1) + 1 / TINY.points).all()


def test_the_map_is_the_cosine_of_centred_features(bench, outcome):
    found = embeddings_of(TINY, bench).train
    x, label = found.x.double().numpy(), outcome.data.label.values
    rows = np.concatenate([np.flatnonzero(found.y.numpy() == k)[: TINY.each] for k in range(10)])
    assert np.array_equal(found.y.numpy()[rows], label)
    c = x[rows] - x.mean(0)
    expected = c @ c.T / np.linalg.norm(c, axis=1)[:, None] / np.linalg.norm(c, axis=1)
    np.testing.assert_allclose(outcome.data.correlation.values, expected, atol=1e-5)


def test_the_claims_are_the_papers_words_and_one_training_is_undecided(outcome):
    found = {claim.id: claim for claim in outcome.claims}
    ours = {"rank.grows", "strict", "correlation.other", "correlation.apart"}
    words = {"correlation.same", "clean", "robust.p3"}  # robust.ends is robust.p3's of these two p
    assert set(found) == words | ours
    assert {id for id, claim in found.items() if claim.source == "ours"} == ours
    assert all(claim.regime.startswith("other data: ") for claim in found.values())
    assert {found[id].verdict for id in ("clean", "robust.p3", "rank.grows")} == {"undecided"}


def test_a_gain_within_its_error_is_undecided_whatever_its_sign(outcome):
    """Figure 4's .008 of 1,000 points and -.008 of 250: both say nothing, in three seeds alike."""
    data = outcome.data.isel(seed=[0, 0, 0]).assign_coords(seed=[0, 1, 2])
    for gain, verdict in ((2, "undecided"), (-2, "undecided"), (40, "holds"), (-40, "differs")):
        right = np.zeros((2, 3, 100), bool)
        right[0, :, :50] = right[1, :, : 50 + gain] = True
        wrong = data.assign(right=(("p", "seed", "test"), right))
        assert verdicts(tuple(claims(wrong, TINY, new_bench())))["clean"] == verdict


def test_the_ends_and_the_largest_radius_can_turn(outcome):
    """A gain of the largest p at the largest radius, none, a loss; at radius 0 nothing is gained or lost."""
    config = replace(TINY, p=(1.0, 3.0, 4.0), radius=(0.0, 0.1))
    one = outcome.data.isel(p=[0, 1, 1], seed=[0, 0, 0], radius=[0, -1])
    data = one.assign_coords(p=[1.0, 3.0, 4.0], seed=[0, 1, 2], radius=[0.0, 0.1])
    point = np.arange(data.sizes["point"])
    for shares, verdict in (
        ((0.1, 0.5, 0.9), "holds"),
        ((0.5, 0.5, 0.5), "undecided"),
        ((0.9, 0.5, 0.1), "differs"),
    ):
        left = np.stack([1 + (point < share * len(point)) for share in shares])[:, None].repeat(
            3, 1
        )
        outlived = data.outlived.transpose("p", "seed", "point").copy(data=left)
        robust = unbroken(outlived, config.radius).mean("point")
        found = verdicts(
            tuple(claims(data.assign(outlived=outlived, robust=robust), config, new_bench()))
        )
        assert found["robust.ends"] == verdict
        # all are unbroken by no attack: at radius 0 there is nothing to gain
        assert found["robust.p3"] == verdict


def test_right_points_are_those_of_the_test_accuracy(outcome):
    share = outcome.data.right.mean("test").transpose("p", "seed")
    end = outcome.data.test_accuracy.isel(epoch=-1).transpose("p", "seed")
    np.testing.assert_allclose(share, end, atol=1e-6)


def test_the_regime_tells_what_stands_for_the_papers_data():
    assert regime_of(FeatureNets(), 2) == (
        "other data: cifar10 by efficientnet-lite0, 2 superclasses; the paper: Caltech-256 by ResNet152, 10"
    )
    own = FeatureNets(dataset="./256_ObjectCategories", extractor="timm:resnet152")
    assert regime_of(own, 10).startswith("inside: Caltech-256")
    assert regime_of(replace(own, epochs=20), 10).startswith("shortened: epochs = 20")
    assert regime_of(own, 2).startswith("other data")


def test_the_layer_as_written_trains_too(bench):
    outcome = fig4.run(replace(TINY, layer="written", p=(3.0,), radius=(0.0, 0.1)), bench)
    net = outcome.nets["p3-seed0"]
    assert net.unit
    assert not net.normalize_input
    assert verdicts(outcome)  # p = 1 is not there: what needs it is left out


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"train": 0}, "train=0"), ({"superclasses": 1}, "superclasses=1"), ({"p": (0.5,)}, "p=0.5"),
     ({"every": 0}, "every=0"), ({"radius": (-1.0,)}, "radius=-1"), ({"size": 0}, "size=0")],
)  # fmt: skip
def test_impossible_settings_are_refused(settings, words):
    with pytest.raises(CallError, match=words):
        replace(FeatureNets(), **settings)


def test_too_few_images_for_the_classes_are_refused(bench):
    with pytest.raises(CallError, match="none is of"):
        embeddings_of(replace(TINY, train=5), bench)


def test_a_missing_extractor_says_how_to_get_it(bench, monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(RunError, match="pip install"):
        embeddings_of(replace(TINY, extractor="efficientnet-lite0"), bench)


def test_the_paper_is_named_where_the_data_are_not_its_own(bench):
    assert "timm:resnet152" in (fig4.substitute(FeatureNets(), bench) or "")
    own = FeatureNets(dataset="./256_ObjectCategories", extractor="timm:resnet152")
    assert fig4.substitute(own, bench) is None


def test_a_class_of_one_image_cannot_be_split():
    with pytest.raises(CallError, match="class 1 has one image"):
        split(np.array([0, 0, 1]), 2, 1, torch.Generator())


def test_the_entry_loads():
    assert EXHIBITS[0].id == "min2024.fig4"
    assert callable(EXHIBITS[0].load().run)


def sets_of(**sizes):
    """Made-up sets of images: label k of a set has the grey 10 k + its own, each image another last pixel."""
    found = {}
    for own, (name, shape) in enumerate(sizes.items()):
        y = np.arange(12) % 4
        x = (
            np.full((12, *shape), 0, np.uint8)
            + (10 * y + own).astype(np.uint8)[:, None, None, None]
        )
        x[:, -1, -1, 0] = np.arange(12)
        found[name] = Images(x, y, ("a", "b", "c", "d"), 255, name)
    return found


def grey(images):
    """Two numbers of an image of any size: its first pixel and its last."""
    return torch.stack([images[:, 0, 0, 0], images[:, 0, -1, -1]], 1)


def test_sets_that_are_taken_together_are_read_by_themselves(bench, monkeypatch):
    """Images of two sizes and colours; the label of the second set's b is 4 + 1, its superclass that modulo 3."""
    sets = sets_of(one=(3, 3, 1), two=(2, 4, 3))
    both = Sets(tuple(sets.values()))
    assert both.classes == ("one a", "one b", "one c", "one d", "two a", "two b", "two c", "two d")
    rows = np.array([13, 0, 5, 23, 12, 7])
    found = both.extracted(rows, make_extractor(grey), bench)
    whole = [image for images in sets.values() for image in images.x]
    expected = [[whole[row][0, 0, 0] / 255, whole[row][-1, -1, 0] / 255] for row in rows]
    np.testing.assert_allclose(found.x, expected, rtol=1e-6)
    assert found.y.tolist() == [int(row >= 12) * 4 + row % 4 for row in rows]
    assert both.y.tolist() == [*(np.arange(12) % 4), *(4 + np.arange(12) % 4)]
    alone = Sets((sets["one"],))
    assert alone.classes == sets["one"].classes
    with pytest.raises(
        CallError, match="makes 9 or 24 features of an image, and those of one and two"
    ):
        both.extracted(rows, named_extractor("pixels"), bench)
    # the superclasses of an exhibit, and what a choice of rows is
    monkeypatch.setattr(embeddings, "load_images", lambda name, part: sets[name])
    monkeypatch.setattr(embeddings, "named_extractor", lambda name, size: make_extractor(grey))
    chosen = embeddings_of(Frozen("one+two", train=16, test=8), bench)
    assert torch.bincount(chosen.train.y).tolist() == [2] * 8
    assert torch.bincount(chosen.test.y).tolist() == [1] * 8
    assert fig4.pictures_of(chosen, 3, "one+two").y.tolist() == [
        k % 3 for k in chosen.train.y.tolist()
    ]


def test_a_set_is_taken_once_and_the_thirty_classes_have_ten_superclasses():
    with pytest.raises(CallError, match=r"dataset=mnist,mnist: each value once"):
        Frozen("mnist+mnist")
    thirty = EXHIBITS[1].scales["laptop"]
    assert (thirty.names, thirty.counted(30)) == (("mnist", "fashion-mnist", "cifar10"), 10)
    assert regime_of(thirty, 10).startswith(
        "other data: mnist+fashion-mnist+cifar10 by efficientnet-lite0, 10 sup"
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not (present("mnist") and present("fashion-mnist")), reason="needs MNIST and Fashion-MNIST"
)
def test_labels_from_ten_on_are_the_second_sets(bench):
    """Pixel by pixel, of the published images."""
    found = embeddings_of(Frozen("mnist+fashion-mnist", "pixels", train=60, test=40), bench)
    for part, features in (("train", found.train), ("test", found.test)):
        sets = [load_images(name, part) for name in ("mnist", "fashion-mnist")]
        known = [
            {row.tobytes(): int(y) for row, y in zip(each.x, each.y, strict=True)} for each in sets
        ]
        pixels = (features.x * 255).round().to(torch.uint8).numpy()
        for row, label in zip(pixels, features.y.tolist(), strict=True):
            assert known[label // 10][row.tobytes()] == label % 10
        assert torch.bincount(features.y).tolist() == [len(features.y) // 20] * 20
