"""Numbers of pictures at waves and noise, where they are known; footnotes 18 and 19."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.fft import dctn

from tacit.errors import CallError
from tacit.measure.features import (
    coarse_share,
    rescaled_like,
    spectrum,
    total_variation,
    waves,
    zero_mean,
)

DOUBLE = torch.float64


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def wave(down: int, across: int, size: int = 32, phase: float = 0.3) -> torch.Tensor:
    i = torch.arange(size, dtype=DOUBLE)
    angle = 2 * math.pi * (down * i.unsqueeze(1) + across * i) / size + phase
    return torch.stack([angle.sin(), 2 * angle.sin(), 0 * angle]).unsqueeze(0)


@given(st.integers(0, 15), st.integers(0, 15))
def test_a_wave_is_coarse_up_to_a_quarter_of_nyquist(down: int, across: int):
    if down or across:
        wanted = float(math.hypot(down, across) <= 4)  # 4 of 32 pixels: 1/8 cycle a pixel
        assert float(coarse_share(wave(down, across))) == pytest.approx(wanted, abs=1e-12)
        assert float(coarse_share(wave(-down, across))) == pytest.approx(wanted, abs=1e-12)


def test_energies_of_waves_add_up():
    both = wave(1, 3) + 0.5 * wave(9, 0)
    assert float(coarse_share(both)) == pytest.approx(1 / 1.25)


def test_the_variation_of_a_wave_is_its_frequency():
    # sin a - sin b = 2 sin((a-b)/2) cos((a+b)/2), and the mean of |cos| is 2/pi
    for across in (1, 2, 5):
        step = 2 * math.sin(math.pi * across / 512) * 2 / math.pi
        found = float(total_variation(wave(0, across, size=512)[:, :1]))
        assert found == pytest.approx(step / 2 * math.sqrt(2), rel=0.01)


def test_a_chessboard_and_noise():
    i = torch.arange(32)
    board = ((i.unsqueeze(1) + i) % 2).expand(1, 3, 32, 32).double()
    assert float(total_variation(board)) == pytest.approx(2.0)
    assert float(coarse_share(board)) == pytest.approx(0.0)
    noise = normal(400, 3, 32, 32)
    share = coarse_share(noise)
    assert float(share.mean()) == pytest.approx(48 / 1023, abs=4 * float(share.std()) / 20)
    varied = total_variation(noise)
    # 1/1023 for the mean that is taken out, and 1/8/3072 for the root, are below the tolerance
    assert float(varied.mean()) == pytest.approx(2 / math.sqrt(math.pi), abs=2e-3)


@given(st.integers(0, 100), st.floats(1e-3, 1e3), st.floats(-10, 10))
def test_contrast_and_brightness_do_not_count(seed: int, contrast: float, brightness: float):
    x = normal(3, 3, 9, 8, seed=seed)
    shift = brightness * torch.tensor([1.0, -2.0, 0.5], dtype=DOUBLE).view(3, 1, 1)
    for number in (coarse_share, total_variation):
        torch.testing.assert_close(number(contrast * x + shift), number(x))


def test_one_colour_has_no_number():
    flat = torch.ones(1, 3, 8, 8) * torch.tensor([0.5, 1.0, 0.0]).view(3, 1, 1)
    assert coarse_share(flat).isnan().all()
    assert total_variation(flat).isnan().all()


def test_means_are_taken_out_channel_by_channel():
    x = normal(4, 3, 8, 8)
    found = zero_mean(x)
    assert float(found.mean((2, 3)).abs().max()) < 1e-15
    torch.testing.assert_close(found[2, 1], x[2, 1] - x[2, 1].mean())


def test_perturbations_get_their_images_mean_and_deviation():
    images, small = 3 * normal(4, 3, 8, 8) + 5, 1e-3 * normal(4, 3, 8, 8, seed=1)
    found = rescaled_like(small, images)
    for i in range(4):
        assert float(found[i].mean()) == pytest.approx(float(images[i].mean()))
        assert float(found[i].std()) == pytest.approx(float(images[i].std()))
        apart, before = (part[i] - part[i].mean() for part in (found, small))
        assert float(torch.cosine_similarity(apart.flatten(), before.flatten(), dim=0)) > 1 - 1e-12
    with pytest.raises(CallError, match="one for each"):
        rescaled_like(small[:2], images)
    with pytest.raises(CallError, match="leave it out"):
        rescaled_like(torch.zeros_like(images), images)


def test_a_cosine_has_all_its_energy_in_its_band():
    """Waves of k/2N cycles a pixel, and both at once."""
    n = torch.arange(8, dtype=torch.float64)

    def wave(k: int) -> torch.Tensor:
        return torch.cos(math.pi * k * (2 * n + 1) / 16)

    for down, across, band in (
        (0, 2, 0),
        (2, 0, 0),
        (2, 1, 1),
        (4, 0, 1),
        (5, 3, 2),
        (0, 7, 3),
        (7, 7, 4),
    ):
        image = (wave(down).unsqueeze(1) * wave(across)).expand(1, 2, 8, 8) + 3
        expected = torch.nn.functional.one_hot(torch.tensor([band]), 5).double()
        assert torch.allclose(spectrum(image), expected, atol=1e-12)
    assert bool(spectrum(torch.ones(1, 1, 8, 8)).isnan().all())


def test_waves_keep_lengths_and_angles():
    x = torch.randn(6, 3, 7, 11, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    flat, found = zero_mean(x).flatten(1), waves(x).flatten(1)
    assert torch.allclose(found @ found.T, flat @ flat.T)
    scipys = dctn(zero_mean(x).numpy(), axes=(2, 3), norm="ortho")
    assert np.allclose(waves(x).numpy(), scipys)
