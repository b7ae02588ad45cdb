"""Figure 7: perturbations of the same images, made for the clean net and for a robust one.

`coarse` is the share of a perturbation's energy in coarse shapes, `variation` its total variation, and `aligned`
its cosine with mean_k - mean_y, the difference of the mean images of the class that the net now sees and of the
image's own: a perturbation that is made of real images turns one class into another.
"""

from functools import partial

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tacit.lab import Bench, Outcome
from tacit.measure.features import coarse_share, total_variation
from tacit.nn.layered import LayeredNet
from tacit.papers._shared.deep import DeepImages
from tacit.papers.allenzhu2020.deep.deltas import deltas
from tacit.papers.allenzhu2020.deep.nets import images_of, nets_of
from tacit.papers.allenzhu2020.fig7.claims import claims
from tacit.papers.allenzhu2020.fig7.figure import draw as draw
from tacit.papers.allenzhu2020.fig7.settings import Perturbations

DIMS = ("shown", "channel", "height", "width")


def run(config: Perturbations, bench: Bench) -> Outcome:
    """Perturb, describe, judge."""
    images = images_of(config)
    x, y = images.tested(config.images, bench.device)
    means = class_means(images).to(x)
    nets = nets_of(config, bench, ("clean", config.attacker))
    parts = {
        name: bench.part(f"net-{name}", partial(described, config, net, x, y, means))
        for name, net in nets.items()
    }
    data = xr.concat(list(parts.values()), xr.Variable("net", ["clean", "robust"]))
    data["picture"] = (DIMS, x[: config.shown].cpu().numpy())
    return Outcome(data, tuple(claims(data, config, bench)))


def class_means(images: DeepImages) -> Tensor:
    """The mean training image of each class, (10, C, H, W)."""
    x = images.x.permute(0, 3, 1, 2)
    means = [x[images.y == k].double().mean(0) for k in range(int(images.y.max()) + 1)]
    return torch.stack(means) / images.top


def described(
    config: Perturbations, net: LayeredNet, x: Tensor, y: Tensor, means: Tensor
) -> xr.Dataset:
    """The perturbations of one net: a few as they are, all in numbers."""
    delta = deltas(net, x, y, config.attacker, steps=config.steps)
    with torch.no_grad():
        seen = torch.cat([net(part) for part in (x + delta).split(1000)]).argmax(1)
    way = (means[seen] - means[y]).flatten(1)
    cosine = torch.nn.functional.cosine_similarity(delta.flatten(1), way)
    aligned = torch.where(seen == y, torch.nan, cosine)  # nothing was turned into another class
    values = {
        "coarse": coarse_share(delta),
        "variation": total_variation(delta),
        "aligned": aligned,
        "broken": (seen != y).float(),
    }
    return xr.Dataset(
        {"delta": (DIMS, delta[: config.shown].cpu().numpy())}
        | {name: ("image", each.cpu().numpy().astype(np.float64)) for name, each in values.items()}
    )
