"""Images that excite the neurons of a layer, of several nets from the same random images."""

from functools import partial

import numpy as np
import torch
import xarray as xr

from tacit.lab import Bench
from tacit.measure.features import at_centre, coarse_share, feature_images, total_variation
from tacit.nn.layered import LayeredNet

DIMS = ("neuron", "channel", "height", "width")


def features_of(
    net: LayeredNet, layer: int, shape: tuple[int, int, int], *, neurons: int, steps: int, bench: Bench,
    rest: float = 0.5,
) -> xr.Dataset:  # fmt: skip
    """The first `neurons` neurons of a layer (all, if it has fewer), at the centre of their maps.

    Pixels are pulled to `rest`, mid-grey unless it is told (footnote 16).
    `image` has the pixels, `coarse` the share of coarse shapes and `variation` the total variation; both are NaN
    for neurons without a gradient, whose image is the random one it started from.
    """
    have = net.convolutions[layer - 1].out_channels
    found = feature_images(
        at_centre(partial(net.output_of, layer)),
        shape,
        neurons=torch.arange(min(neurons, have)),
        generator=bench.generator("feature images", layer),
        steps=steps,
        rest=rest,
        device=bench.device,
    )
    values = {"coarse": coarse_share(found.images), "variation": total_variation(found.images)}
    alive = {name: torch.where(found.dead, torch.nan, each) for name, each in values.items()}
    return xr.Dataset(
        {"image": (DIMS, found.images.cpu().numpy().astype(np.float32))}
        | {name: ("neuron", each.cpu().numpy()) for name, each in alive.items()},
        coords={"neuron": np.arange(len(found.images))},  # layers of fewer are filled up with NaN
    )
