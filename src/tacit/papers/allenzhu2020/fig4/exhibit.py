"""Figure 4: images as sparse combinations of the features of AlexNet's first layer, adversarially trained.

As in Section 8.3: the first images that the robust net has right, each channel of mean 0, by the Lasso, with the
transpose of the first convolution as the dictionary (footnote 18). Each image has the weight lambda at which its
relative squared error is `error`, found on its path. `sparsity` is the share of coefficients that are not 0,
`psnr` that of the picture with the channels' means put back, `kept` whether the net still has the picture right.
"""

from functools import partial

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tacit.lab import Bench, Outcome
from tacit.measure.attacked import kept_right
from tacit.measure.features import lasso, lasso_path, weight_at_error, zero_mean
from tacit.papers.allenzhu2020.deep.nets import alex_nets, images_of
from tacit.papers.allenzhu2020.fig4.claims import claims
from tacit.papers.allenzhu2020.fig4.figure import draw as draw
from tacit.papers.allenzhu2020.fig4.settings import Rebuilt
from tacit.papers.allenzhu2020.fig12.exhibit import features_in, first_right

DIMS = ("shown", "channel", "height", "width")


def run(config: Rebuilt, bench: Bench) -> Outcome:
    """Train, choose, rebuild, judge."""
    data = bench.part("robust", partial(rebuilt, config, bench))
    return Outcome(data, tuple(claims(data, config, bench)))


def rebuilt(config: Rebuilt, bench: Bench) -> xr.Dataset:
    """All images in numbers, a few as they are; paths that do not reach the error give their last."""
    net = alex_nets(config, bench)["robust"]
    x, y = images_of(config).tested(config.among, bench.device)
    chosen = first_right(net, x, y, config.images)
    x, y = x[chosen], y[chosen]
    features, targets = features_in(net), zero_mean(x)
    path = lasso_path(features, targets, lambdas=config.lambdas, least=config.least)
    weights = weight_at_error(path, config.error)
    reached = weights.isfinite()
    found = lasso(features, targets, torch.where(reached, weights, path.weights[-1]))
    pictures = (found.decoded + x.mean((2, 3), keepdim=True)).clamp(0, 1)
    values: dict[str, Tensor] = {
        "sparsity": found.sparsity,
        "error": found.error,
        "solved": found.solved,
        "reached": reached,
        "psnr": -10 * (pictures - x).square().mean((1, 2, 3)).log10(),
        "kept": kept_right(net, pictures, y),
        "chosen": chosen,
    }
    few = slice(config.shown)
    return xr.Dataset(
        {name: ("image", t.cpu().numpy().astype(np.float64)) for name, t in values.items()}
        | {
            name: (DIMS, t[few].cpu().numpy().astype(np.float32))
            for name, t in {"picture": x, "rebuilt": pictures}.items()
        }
    )
