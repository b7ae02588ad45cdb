import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tacit.data.features import Extractor, ImageTransform
from tacit.errors import CallError


def images(b, height, width, channels, seed=0):
    draw = np.random.default_rng(seed).integers(0, 256, (b, height, width, channels))
    return torch.tensor(draw, dtype=torch.uint8)


@given(b=st.integers(1, 3), h=st.integers(1, 5), w=st.integers(1, 5), c=st.sampled_from([1, 3, 4]))
def test_without_size_pixels_are_divided_by_255_and_channels_come_first(b, h, w, c):
    x = images(b, h, w, c)
    out = ImageTransform()(x)
    assert out.shape == (b, c, h, w)
    assert np.array_equal(out.numpy().transpose(0, 2, 3, 1), x.numpy().astype(np.float32) / 255)


def test_normalisation_is_by_channel():
    x = images(2, 4, 4, 3)
    mean, std = (0.1, 0.2, 0.3), (0.5, 1.0, 2.0)
    out = ImageTransform(mean=mean, std=std)(x).double().numpy()
    expected = (x.numpy() / 255 - np.array(mean)) / np.array(std)
    assert np.allclose(out.transpose(0, 2, 3, 1), expected, atol=1e-6)


@pytest.mark.parametrize("size", [8, 20, 40])
def test_resizing_agrees_with_pillow(size):
    """Pillow's bicubic antialiases too; in floats it does not round between its two passes."""
    x = images(1, 24, 24, 1, seed=3)
    ours = ImageTransform(size)(x)[0, 0].numpy() * 255
    image = Image.fromarray(x[0, ..., 0].numpy().astype(np.float32))
    theirs = np.asarray(image.resize((size, size), Image.Resampling.BICUBIC))
    assert theirs.max() > 255 or theirs.min() < 0 or size < 24  # so that the clamp is tested
    assert np.allclose(ours, theirs.clip(0, 255), atol=1e-3)


@pytest.mark.parametrize(("height", "width"), [(6, 10), (10, 6)])
def test_of_an_oblong_image_the_middle_square_is_kept(height, width):
    x = images(1, height, width, 1)
    out = ImageTransform(6)(x)[0, 0]
    middle = x[0, 2:8, :, 0] if height > width else x[0, :, 2:8, 0]
    assert torch.allclose(out, middle.float() / 255, atol=1e-6)


def test_grey_becomes_three_equal_channels_and_colour_stays():
    grey, colour = images(2, 3, 3, 1), images(2, 3, 3, 3)
    out = ImageTransform(rgb=True)(grey)
    assert out.shape == (2, 3, 3, 3)
    assert (out == out[:, :1]).all()
    assert torch.equal(ImageTransform(rgb=True)(colour), ImageTransform()(colour))
    with pytest.raises(CallError, match="4 channels"):
        ImageTransform(rgb=True)(images(1, 3, 3, 4))


def test_a_side_of_no_pixels_is_refused():
    with pytest.raises(CallError, match="size=0"):
        ImageTransform(0)


def test_pixels_are_stretched_to_255_exactly_or_rounded():
    x = torch.arange(17, dtype=torch.uint8).reshape(1, 1, 17, 1)
    flat = torch.nn.Flatten()
    exact = Extractor("e", flat, ImageTransform(), "")
    assert torch.equal(exact(x, 16), torch.arange(17)[None] / 16)
    seen = []
    rounded = Extractor("r", flat, lambda t: seen.append(t.dtype) or t.float(), "")
    assert torch.equal(rounded(x, 16), (torch.arange(17.0)[None] * 255 / 16).round())
    assert seen == [torch.uint8]


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (lambda x: x, r"torch.float32 \(2, 1, 3, 3\)"),
        (lambda x: x.flatten(1)[:1], "1 rows for 2 images"),
        (lambda x: x.flatten(1).long(), "torch.int64"),
    ],
)
def test_what_is_no_row_of_features_an_image_is_refused(module, said):
    with pytest.raises(CallError, match=said):
        Extractor("odd", module, ImageTransform(), "")(images(2, 3, 3, 1))
