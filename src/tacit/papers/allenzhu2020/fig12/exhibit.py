"""Figure 12, ResNet and AlexNet: how sparsely images and perturbations are made of the first layer's features.

First row: the first images that the robust net has right (footnote 18), each channel of mean 0, in the features
of the random start, of the clean net and of the robust one. Second row: perturbations of the clean net and of the
robust one for these images, rescaled to their mean and standard deviation (footnote 19), in the robust features.
`sparsity` is the share of coefficients that are not 0, `error` the relative squared error, along Lasso paths;
`at_error` the sparsity at one error, image by image. `regression` is the least squares error of the clean net's
perturbations (Remark 8.2), and `regressed` whether conjugate gradients came to their end.

AlexNet's 64 filters of 11 x 11 at stride 4 make 64 * 8 * 8 = 4096 coefficients for 3072 pixels of an image: from
48 filters on those of a random net span all images, and exact least squares would leave nothing. What is left
after training is a matter of how much smaller some filters are than others, and of the solver's steps.
"""

from functools import partial

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from tacit.errors import RunError
from tacit.lab import Bench, Outcome
from tacit.measure.attacked import kept_right
from tacit.measure.features import (
    ConvDictionary,
    lasso_path,
    regression_error,
    rescaled_like,
    sparsity_at_error,
    zero_mean,
)
from tacit.nn.layered import LayeredNet
from tacit.papers.allenzhu2020.deep.deltas import deltas
from tacit.papers.allenzhu2020.deep.nets import alex_nets, images_of, nets_of, start_net
from tacit.papers.allenzhu2020.deep.settings import Alex
from tacit.papers.allenzhu2020.fig12.claims import claims
from tacit.papers.allenzhu2020.fig12.figure import draw as draw
from tacit.papers.allenzhu2020.fig12.settings import EitherNet


def run(config: EitherNet, bench: Bench) -> Outcome:
    """Train, choose, perturb, reconstruct, judge."""
    x, y = images_of(config).tested(config.among, bench.device)
    nets = three_nets(config, bench)
    clean, robust = nets["clean"], nets["robust"]
    chosen = first_right(robust, x, y, config.images)
    x, y = x[chosen], y[chosen]

    def changed_by(net: LayeredNet) -> Tensor:
        return rescaled_like(deltas(net, x, y, config.attacker, steps=config.steps), x)

    cases = {
        "random": (nets["random"], x),
        "clean": (clean, x),
        "robust": (robust, x),
        "clean_delta": (robust, changed_by(clean)),
        "robust_delta": (robust, changed_by(robust)),
    }
    parts = [
        bench.part(name, partial(reconstructed, config, features_in(net), zero_mean(targets)))
        for name, (net, targets) in bench.steps(cases.items(), "Lasso paths")
    ]
    data = xr.concat(parts, xr.Variable("case", list(cases)))
    within = partial(spanned, config, features_in(robust), zero_mean(cases["clean_delta"][1]))
    data = data.merge(bench.part("span", within))
    data["chosen"] = ("image", chosen.cpu().numpy())
    return Outcome(data, tuple(claims(data, config, bench)))


def three_nets(config: EitherNet, bench: Bench) -> dict[str, LayeredNet]:
    """`random`, `clean` and `robust`, whose first layers are compared."""
    if isinstance(config, Alex):
        return alex_nets(config, bench)
    found = nets_of(config, bench, ("clean", config.attacker))
    random = start_net(config, bench, images_of(config)).to(bench.device)
    return {"random": random, "clean": found["clean"], "robust": found[config.attacker]}


def first_right(net: nn.Module, x: Tensor, y: Tensor, count: int) -> Tensor:
    """The numbers of the first images that the net has right."""
    right = (kept_right(net, x, y) > 0).nonzero().squeeze(1)
    if len(right) < count:
        raise RunError(
            f"images={count}: the robust net has {len(right)} of {len(x)} test images right; ask for fewer, or "
            "raise among"
        )
    return right[:count]


def features_in(net: LayeredNet) -> ConvDictionary:
    """The first convolution as a dictionary: its transpose reconstructs."""
    first = net.convolutions[0]
    return ConvDictionary(first.weight.detach(), int(first.stride[0]), int(first.padding[0]))


def reconstructed(config: EitherNet, features: ConvDictionary, targets: Tensor) -> xr.Dataset:
    """The paths of all targets in one dictionary."""
    path = lasso_path(features, targets, lambdas=config.lambdas, least=config.least)
    values = {
        "sparsity": (("weight", "image"), path.sparsity),
        "error": (("weight", "image"), path.error),
        "solved": (("weight", "image"), path.solved.to(torch.float64)),
        "at_error": ("image", sparsity_at_error(path, config.error)),
    }
    return xr.Dataset(
        {name: (dims, t.cpu().numpy().astype(np.float64)) for name, (dims, t) in values.items()}
    )


def spanned(config: EitherNet, features: ConvDictionary, targets: Tensor) -> xr.Dataset:
    """How far the targets are from the span of the features."""
    found = regression_error(features, targets, steps=config.regression_steps)
    values = {"regression": found.error, "regressed": found.solved.to(torch.float64)}
    return xr.Dataset({name: ("image", t.cpu().numpy()) for name, t in values.items()})
