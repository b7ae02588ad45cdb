"""min2024, footnote 4: training on images that nothing has normalized, on scikit-learn's digits."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from benches import new_bench, verdicts
from tacit.papers.min2024.fig3 import exhibit as fig3
from tacit.papers.min2024.fig3.raw import largest_fall, raw_claims
from tacit.papers.min2024.fig3.settings import Curves

SMALL = Curves(
    dataset="digits", classes=2, width=40, epochs=12, batch=150, step=0.01, points=40, steps=10, shown=300,
    each=8, repeats=2,
)  # fmt: skip


def test_the_net_of_raw_images_is_the_released_one_at_p_1_and_another_at_p_4():
    """From the same weights and in the same order: at p = 1 nothing is divided, so that both nets are one."""
    pictures = fig3.pictures_of("digits", 2)
    for p, alike in ((1.0, True), (4.0, False)):
        config = replace(SMALL, p=(p,), epochs=3, repeats=1)
        watched = fig3.Watched(100, (0, 1, 2, 3))
        _, released = fig3.trained_nets(config, new_bench(), pictures, watched)
        raw = fig3.raw_accuracy(config, new_bench(), pictures, watched)["raw_accuracy"]
        own = released.test_accuracy.sel(p=p, drop=True)
        assert (abs(raw - own).max() < 1e-6) == alike
    config = replace(SMALL, p=(4.0,), epochs=1, repeats=1, layer="raw")
    (net,) = fig3.trained_nets(config, new_bench(), pictures)[0].values()
    x = pictures.x[:20].double()
    twice = net.centre + 2 * (x - net.centre)  # the footnote: as ||x||^p
    torch.testing.assert_close(net.double().hidden(twice), 2**4 * net.double().hidden(x))


def test_the_largest_p_is_trained_without():
    pictures = fig3.pictures_of("digits", 2)
    watched = fig3.Watched(100, (0, 1))
    both, last = (
        fig3.raw_accuracy(replace(SMALL, p=p, epochs=1, repeats=1), new_bench(), pictures, watched)[
            "raw_accuracy"
        ]
        for p in ((1.0, 4.0), (4.0,))
    )
    assert abs(both - last).max() < 1e-6
    least = fig3.raw_accuracy(
        replace(SMALL, p=(1.0,), epochs=1, repeats=1), new_bench(), pictures, watched
    )
    assert abs(both - least["raw_accuracy"]).max() > 0.01


def test_a_fall_is_from_one_epoch_to_the_next_and_never_below_0():
    epochs = ([0.9, 0.5, 0.8, 0.6, 0.95], [0.1, 0.5, 0.8, 0.9, 0.95])
    accuracy = xr.DataArray(np.array(epochs).T, dims=("epoch", "seed"))
    assert largest_fall(accuracy).values == pytest.approx([0.2, 0.0])


def told(with_it, without):
    """Test accuracy epoch by epoch at p = 4, the same for six seeds up to a thousandth."""
    jitter = xr.DataArray(np.linspace(-5e-4, 5e-4, 6), dims="seed")

    def rows(values):
        return xr.DataArray(list(values), dims="epoch") * (1 + jitter)

    first = rows(with_it).expand_dims(p=[4.0])
    return xr.Dataset({"test_accuracy": first, "raw_accuracy": rows(without) * (1 - 3 * jitter)})


@pytest.mark.parametrize(
    ("with_it", "without", "falls", "ends"),
    [
        ((0.5, 0.8, 0.9, 0.95), (0.5, 0.8, 0.6, 0.9), "holds", "as predicted"),
        ((0.5, 0.8, 0.6, 0.95), (0.5, 0.8, 0.85, 0.9), "differs", "as predicted"),
        ((0.5, 0.8, 0.9, 0.95), (0.5, 0.8, 0.6, 0.99), "holds", "not as predicted"),
        # what is lost before the first epoch has ended is no fall
        ((0.5, 0.8, 0.7, 0.95), (0.9, 0.1, 0.85, 0.9), "differs", "as predicted"),
    ],
)
def test_stability_is_how_far_accuracy_falls(with_it, without, falls, ends):
    config = replace(SMALL, p=(1.0, 4.0), epochs=3)
    judge = new_bench().claims("there", source="words", bar="ours: so", regime="inside: so")
    found = verdicts(tuple(raw_claims(told(with_it, without), config, judge)))
    assert found == {"raw.falls": falls, "raw.ends": ends}
