r"""What is read off each net: robust and clean accuracy, what it averages, how pure its first features are.

- `right`: clean, of all test images, by the paper's rule of halves (`fig3b.binary`); `kept` (radius, point): left
  by APGD and, where it was tried, by the strict attack, at that radius or a smaller one. `flags`: the strict
  attack's, by radius.
- `to_class`, `to_subclass`: the audit's measure (`measure.averaging`): a neuron's largest cosine with the mean
  features of a half, and of a class, averaged by mass. Neurons are what reads the pooled features: the PolyReLU
  layer, or the rows of the linear head less their mean, which no softmax sees. Features are centred, as the
  PolyReLU head has them. `apart`: the share of the features' variance within halves that is between classes.
  Both of the first LOOKED test images.
- `start`, `filters` (filter, tap): the first convolution before and after training, and `sparsity` (image): the
  share of coefficients that the Lasso needs to make images of these filters (allenzhu2020, Figure 12).
"""

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Int64
from sklearn.metrics import adjusted_rand_score
from torch import Tensor, nn

from tacit.attack.inner import Ball
from tacit.lab import Bench
from tacit.measure.averaging import nearness, subclass_share
from tacit.measure.features import lasso_path, sparsity_at_error, zero_mean
from tacit.nn.layered import LayeredNet
from tacit.nn.poly_head import PolyHeadResNet18
from tacit.papers.allenzhu2020.deep.strict import FLAGS, strict
from tacit.papers.allenzhu2020.fig12.exhibit import features_in
from tacit.papers.li2025.deep_story.nets import HALF, images_of, net_of, read, start_of
from tacit.papers.li2025.deep_story.settings import DeepStory, Row
from tacit.papers.li2025.fig3b.binary import Halves, rightly, withstood

LOOKED = 2000  # test images whose features are read


def measured(config: DeepStory, bench: Bench, row: Row, seed: int) -> xr.Dataset:
    """Train one net, or take it from the store, and read everything off it."""
    images = images_of(config)
    net, told = net_of(config, bench, images, row, seed)
    x, classes = images.tested(len(images.test_y), bench.device)
    found = attacked(config, Halves(net).eval(), x, classes // HALF, bench.seed)
    start = start_of(config, bench, images, row, seed)
    # float64: in float32 up to a third of the problems with a head's filters do not come to the gap of 1e-4
    targets = zero_mean(x[: config.images].double())
    path = lasso_path(features_in(net), targets, lambdas=config.lambdas, least=config.least)
    agreement = adjusted_rand_score(images.y, told.y)
    few = slice(LOOKED)
    return found.merge(averages(net, x[few], classes[few], bench.device)).assign(
        start=(("filter", "tap"), first_filters(start)),
        filters=(("filter", "tap"), first_filters(net)),
        sparsity=("image", sparsity_at_error(path, config.error).cpu().numpy()),
        solved=float(path.solved.double().mean()),
        rand=agreement if row == "discovered" else np.nan,
    )


def attacked(
    config: DeepStory,
    rule: nn.Module,
    x: Float[Tensor, "n C H W"],
    y: Int64[Tensor, " n"],
    seed: int,
) -> xr.Dataset:
    """`right`, `kept` with radius 0 first, and the strict attack's `flags` (at, flag)."""
    radii, at = sorted(config.radius), sorted(config.at)
    right, few = rightly(rule, x, y), slice(config.points)
    left = withstood(rule, x[few], y[few], tuple(radii), steps=config.steps, seed=seed)
    kept, flags = left & right[few], []
    some = slice(config.strict)
    for radius in at:
        # a net of two scores, its gradients in the image alone
        found = strict(
            rule, x[some], y[some], Ball(2.0, radius, config.strict_steps, 0.1), steps=config.strict_steps,
            restarts=config.restarts, queries=config.queries, seed=seed,
        )  # fmt: skip
        kept = without(kept, found.left, radii.index(radius))
        flags.append([found.flags[name] for name in FLAGS])
    whole = torch.cat([right[few].unsqueeze(0), kept])
    return xr.Dataset(
        {
            "right": ("test", right.cpu().numpy().astype(np.int8)),
            "kept": (("radius", "point"), whole.cpu().numpy().astype(np.int8)),
            "flags": (("at", "flag"), np.array(flags)),
        },
        coords={"radius": [0.0, *radii], "at": at, "flag": list(FLAGS)},
    )


def without(kept: Bool[Tensor, "R n"], left: Bool[Tensor, " k"], index: int) -> Bool[Tensor, "R n"]:
    """`kept` less those of the first k points that are not `left`, from the radius of that index on."""
    kept = kept.clone()
    kept[index:, : len(left)] &= left
    return kept


def averages(
    net: LayeredNet, x: Float[Tensor, "n C H W"], classes: Int64[Tensor, " n"], device: str
) -> xr.Dataset:
    """The audit's cosines, and how far apart classes of one half are."""
    w, mass, features = neurons(net, x, device)
    halves, classes = (classes // HALF).cpu(), classes.cpu()
    near = nearness(w, mass / mass.sum(), features, halves, classes)
    return xr.Dataset(
        {
            "to_class": near.to_class,
            "to_subclass": near.to_subclass,
            "apart": subclass_share(features, halves, classes),
        }
    )


def neurons(
    net: LayeredNet, x: Float[Tensor, "n C H W"], device: str
) -> tuple[Float[Tensor, "h D"], Float[Tensor, " h"], Float[Tensor, "n D"]]:
    """What reads the features: weights and masses, and the features, centred."""
    head = net.head.weight.detach().double().cpu()
    if isinstance(net, PolyHeadResNet18):
        w = net.poly.weight.detach().double().cpu()
        mass, features = w.norm(dim=1) * head.norm(dim=0), read(net.centred, x, device)
    else:
        w = head - head.mean(0)
        mass, features = w.norm(dim=1), read(net.features, x, device)
    return w, mass, features - features.mean(0)


def first_filters(net: LayeredNet) -> np.ndarray:
    """The first convolution, a filter a row."""
    return net.convolutions[0].weight.detach().flatten(1).cpu().numpy()
