import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tacit.data.features import Extractor, ImageTransform, extract, features_of, make_extractor
from tacit.data.images import Images, load_images
from tacit.errors import RunError


def some(n, seed=0, shape=(4, 4, 3), top=255, labels=None):
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 3, n) if labels is None else labels
    x = draw.integers(0, top + 1, (n, *shape)).astype(np.uint8)
    return Images(x, y, ("a", "b", "c"), top, "some")


class Linear(nn.Module):
    """A linear map of the pixels; counts the images that it was given."""

    seen = 0

    def __init__(self, d=5, seed=0, pixels=48):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.register_buffer("w", torch.randn(pixels, d, generator=generator))

    def forward(self, x):
        Linear.seen += len(x)
        return x.flatten(1) @ self.w


@pytest.fixture(autouse=True)
def _count_from_zero():
    Linear.seen = 0


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(extract, "PART", 10)


def by_hand(images, module):
    """The same map in numpy, from the pixels, channels first."""
    pixels = images.x.transpose(0, 3, 1, 2).reshape(len(images), -1) / images.top
    return pixels @ module.w.numpy().astype(np.float64)


@given(n=st.integers(1, 40), batch=st.integers(1, 50), seed=st.integers(0, 99))
def test_features_are_those_of_the_map_at_any_batch_size(n, batch, seed):
    images, module = some(n, seed), Linear(seed=seed)
    got = features_of(images, make_extractor(module), batch=batch, cache=False)
    assert np.allclose(got.x, by_hand(images, module), atol=1e-5)
    assert got.x.dtype == torch.float32
    assert np.array_equal(got.y, images.y)
    assert got.classes == images.classes


def test_average_pooling_gives_the_mean_of_each_channel():
    images = some(7)
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    got = features_of(images, make_extractor(pool), cache=False)
    assert np.allclose(got.x, images.x.mean((1, 2)) / 255, atol=1e-6)


def test_pixels_of_digits_are_exact():
    digits = load_images("digits", "test")
    assert torch.equal(
        features_of(digits, make_extractor("pixels"), cache=False).x, digits.pixels()
    )


def test_a_hit_gives_the_same_bits_and_calls_nothing(tmp_path):
    images, told = some(30), []
    extractor = make_extractor(Linear())
    first = features_of(images, extractor, cache=str(tmp_path), batch=7, tell=told.append)
    assert Linear.seen == 30
    again = features_of(images, extractor, cache=tmp_path, batch=11, tell=told.append)
    assert Linear.seen == 30
    assert torch.equal(first.x, again.x)
    assert not told
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("change", ["data", "labels", "weights", "transform", "n"])
def test_whatever_changes_the_features_misses_the_cache(tmp_path, change):
    images = some(12)
    features_of(images, make_extractor(Linear()), cache=tmp_path)
    Linear.seen = 0
    if change == "data":
        images.x[3, 0, 0, 0] ^= 1
    elif change == "labels":  # those that come back are the source's own
        images = some(12, labels=np.array([0, 1, 2] * 4))
    elif change == "n":
        images = Images(images.x[:-1], images.y[:-1], images.classes, 255, "fewer")
    module = Linear(seed=1 if change == "weights" else 0)
    transform = ImageTransform(std=(2.0,)) if change == "transform" else None
    got = features_of(images, make_extractor(module, transform), cache=tmp_path)
    factor = 2 if change == "transform" else 1
    assert np.allclose(got.x * factor, by_hand(images, module), atol=1e-5)
    assert np.array_equal(got.y, images.y)
    assert Linear.seen == len(images) or change == "labels"


def test_the_users_cache_is_the_default_and_false_keeps_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    features_of(some(3), make_extractor(Linear()), cache=False)
    assert not list(tmp_path.iterdir())
    features_of(some(3), make_extractor(Linear()))
    assert len(list((tmp_path / "tacit" / "features").iterdir())) == 1


def damage(path, how):
    content = bytearray(path.read_bytes())
    if how == "flipped bit":
        content[-5] ^= 1
    elif how == "truncated":
        del content[-9:]
    elif how == "another key":
        content = content.replace(path.name[:64].encode(), b"0" * 64)
    else:
        content = bytearray() if how == "empty" else bytearray(b"no tensors at all" * 9)
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("how", ["flipped bit", "truncated", "another key", "empty", "text"])
def test_a_damaged_file_is_told_and_computed_again(tmp_path, how):
    images, told = some(9), []
    extractor = make_extractor(Linear())
    first = features_of(images, extractor, cache=tmp_path).x
    (path,) = tmp_path.iterdir()
    damage(path, how)
    assert torch.equal(features_of(images, extractor, cache=tmp_path, tell=told.append).x, first)
    assert "computed again" in told[0]
    assert torch.equal(features_of(images, extractor, cache=tmp_path, tell=told.append).x, first)
    assert Linear.seen == 18  # it has been mended
    assert len(told) == 1


def test_a_file_of_fewer_rows_is_not_trusted(tmp_path):
    extractor, told = make_extractor(Linear()), []
    features_of(some(9), extractor, cache=tmp_path)
    (nine,) = tmp_path.iterdir()
    from tacit.data.features.cache import FeatureCache

    other = FeatureCache(tmp_path, nine.stem, 10, told.append)
    assert other.whole() is None
    assert "holds 9 rows, not 10" in told[0]


class Stops(Linear):
    """Breaks down once it has seen so many images."""

    def __init__(self, after):
        super().__init__()
        self.after = after

    def forward(self, x):
        if Linear.seen + len(x) > self.after:
            raise KeyboardInterrupt
        return super().forward(x)


def interrupted(images, folder, after, batch):
    """An extraction that was stopped, and the extractor that goes on with it."""
    whole = Extractor("e", Linear(), ImageTransform(), "the same")
    stops = Extractor("e", Stops(after), ImageTransform(), "the same")
    with pytest.raises(KeyboardInterrupt):
        features_of(images, stops, cache=folder, batch=batch)
    Linear.seen = 0
    return whole


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(("batch", "then", "kept"), [(5, 5, 30), (4, 7, 24), (16, 3, 32)])
def test_an_interrupted_extraction_goes_on_after_its_last_part(tmp_path, batch, then, kept):
    images = some(43)
    whole = interrupted(images, tmp_path, 35, batch)
    steps = []
    got = features_of(
        images, whole, cache=tmp_path, batch=then, progress=lambda *at: steps.append(at)
    )
    assert Linear.seen == 43 - kept
    assert steps[0] == (kept, 43)
    assert steps[-1] == (43, 43)
    assert np.allclose(got.x, by_hand(images, whole.module), atol=1e-5)
    assert len(list(tmp_path.iterdir())) == 1  # the parts are gone


@pytest.mark.usefixtures("small_parts")
def test_after_a_damaged_part_all_is_computed_again(tmp_path):
    images, told = some(43), []
    whole = interrupted(images, tmp_path, 35, 5)
    (second,) = tmp_path.glob("*.parts/10.safetensors")
    damage(second, "flipped bit")
    got = features_of(images, whole, cache=tmp_path, tell=told.append)
    assert Linear.seen == 33
    assert len(told) == 1
    assert np.allclose(got.x, by_hand(images, whole.module), atol=1e-5)


def test_without_an_identity_nothing_is_kept_and_that_is_told(tmp_path):
    told = []
    unhashable = iter([1])
    unknown = make_extractor(lambda x: x.flatten(1) if unhashable else x, name="mine")
    features_of(some(3), unknown, cache=tmp_path, tell=told.append)
    assert not list(tmp_path.iterdir())
    assert "'mine' are not kept" in told[0]


def test_the_module_is_in_eval_mode_and_left_as_it_was():
    module = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.BatchNorm1d(48), nn.Linear(48, 4))
    module[1].eval()
    before = [part.training for part in module.modules()]
    extractor = Extractor("own", module, ImageTransform(), "")
    a, b = (features_of(some(20), extractor, batch=k, cache=False).x for k in (4, 20))
    assert torch.allclose(a, b, atol=1e-6)
    assert [part.training for part in module.modules()] == before
    assert module[2].num_batches_tracked == 0


def test_features_can_be_trained_on():
    """They come from no graph, and are no inference tensors either, which autograd refuses."""
    x = features_of(some(5), make_extractor(Linear()), cache=False).x
    assert not x.requires_grad
    w = torch.ones(5, 2, requires_grad=True)
    (x @ w).sum().backward()
    assert torch.allclose(w.grad, x.sum(0)[:, None].expand(-1, 2))


def test_training_ones_own_module_on_leaves_the_extractor_alone():
    module = Linear()
    extractor = make_extractor(module)
    before = features_of(some(5), extractor, cache=False).x
    module.w.mul_(2)
    assert torch.equal(features_of(some(5), extractor, cache=False).x, before)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_nan_and_infinity_name_the_image(tmp_path, value):
    def odd(x):
        out = x.flatten(1).clone()
        return torch.where(out[:, :1] == 7 / 255, value, out)

    images = some(30, seed=2)
    images.x[:, 0, 0, 0] = 9
    images.x[[17, 23], 0, 0, 0] = 7
    with pytest.raises(RunError, match="'odd' gives NaN or infinity for image 17"):
        features_of(images, make_extractor(odd), batch=4, cache=tmp_path)
    assert not list(tmp_path.iterdir())
