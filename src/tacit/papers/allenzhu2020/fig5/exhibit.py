"""Figure 5: how many neurons of a WideResNet are active, epoch by epoch of its clean training.

A neuron is active on an image and at a position where its ReLU is given a number above 0, which is what a batch
norm puts out. `share` has, for each ReLU from the first on, the share that is active over all channels and
positions, in the mean over test images; `each` has it image by image at three moments: at the random start, after
one epoch, at the end. Before the first epoch norms have no statistics yet (means 0, variances 1); weights are
then as likely as their negatives, so that half of the numbers are above 0 on average over nets.
`right` says which of these images the net has right at the end.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr
from torch import nn

from tacit.errors import CallError
from tacit.lab import Bench, Outcome
from tacit.measure.attacked import kept_right
from tacit.measure.features import active_shares
from tacit.nn.residual import PreActResNet
from tacit.papers._shared.deep import deep_trainings
from tacit.papers.allenzhu2020.deep.nets import images_of, jobs_of
from tacit.papers.allenzhu2020.fig5.claims import claims
from tacit.papers.allenzhu2020.fig5.figure import draw as draw
from tacit.papers.allenzhu2020.fig5.settings import Active
from tacit.train.deep.fit import Watch

MOMENTS = {"start": 0, "first": 1, "end": -1}


def run(config: Active, bench: Bench) -> Outcome:
    """Train and watch, judge."""
    data = bench.part("clean", partial(watched, config, bench))
    return Outcome(data, tuple(claims(data, config, bench)))


def watched(config: Active, bench: Bench) -> xr.Dataset:
    """The training, or what is kept of it."""
    images = images_of(config.training)
    if config.images > len(images.test_y):
        raise CallError(
            f"images={config.images}: {config.dataset} has {len(images.test_y)} test images"
        )
    x, y = images.tested(config.images, bench.device)
    (job,) = jobs_of(config.training, bench, images, ("clean",)).values()
    watch = Watch(partial(active_shares, before_relus, x=x))
    trained = deep_trainings(bench, {"clean": replace(job, watch=watch)})["clean"]
    seen = trained.watched
    assert seen is not None
    return xr.Dataset(
        {
            "share": (("epoch", "layer"), seen.mean(2, dtype=np.float64)),
            "each": (("moment", "layer", "image"), seen[list(MOMENTS.values())]),
            "right": ("image", kept_right(trained.net, x, y).cpu().numpy()),
        },
        coords={
            "epoch": np.arange(len(seen)),
            "layer": np.arange(1, seen.shape[1] + 1),
            "moment": list(MOMENTS),
        },
    )


def before_relus(net: nn.Module) -> Sequence[nn.Module]:
    """The norms of a pre-activation net in the order in which an image meets them: a ReLU follows each."""
    assert isinstance(net, PreActResNet)
    return [*(norm for block in net.blocks for norm in (block.bn1, block.bn2)), net.norm]  # type: ignore[list-item]
