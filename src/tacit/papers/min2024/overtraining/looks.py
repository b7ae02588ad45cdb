r"""Nets on their way, and what is seen of them with and without an attack, after each of some epochs.

Indicators, on test points that are never attacked (means or medians over them):

    loss       the cross-entropy
    accuracy   the share with a positive margin
    distance   the median of margin / |gradient of the margin| in l2: how far the point is from being broken, to
               first order (negative where it is broken)
    margin     the median margin over the net's size, sum_kj |v_kj| |w_j|
    size       that size
    train      the cross-entropy of the training points
"""

from dataclasses import replace

import numpy as np
import torch
import xarray as xr
from jaxtyping import Int64
from torch import Tensor

from tacit.attack import apgd, cross_entropy, margin
from tacit.attack.target import loss_and_gradient, target_of
from tacit.base.shapes import Rows
from tacit.base.threads import side_by_side
from tacit.certify.logits.radius import logits_certified
from tacit.lab import Bench
from tacit.nets import PolyReLUNet
from tacit.papers.min2024.images.nets import BOX, Pictures
from tacit.papers.min2024.images.training import starts_of
from tacit.papers.min2024.overtraining.settings import Overtraining
from tacit.papers.min2024.table1_strict.attacks import rival_means
from tacit.train import train_logits

NORMS = {"linf": "inf", "l2": "2"}
SHOWN = 2000  # training points whose loss is read, and most test points of the indicators
WORKERS = 1  # operations are short: two threads took 172 s where one takes 125
INDICATORS = {"loss": "least", "accuracy": "most", "distance": "most", "margin": "most"}
"""Those that have a best epoch of their own, and whether it is where they are least or most."""


def of_seed(config: Overtraining, bench: Bench, pictures: Pictures, seed: int) -> xr.Dataset:
    """The nets of one seed: `kept` (p, epoch, row, point), indicators (p, epoch).

    At the radius of proofs: `proved` and `left` by the attack, (p, epoch, sure).
    """
    nets = nets_by_epoch(config, bench, pictures, seed)
    ps, epochs = sorted(config.p), sorted(config.at)
    cells = [(p, epoch) for p in ps for epoch in epochs]
    seen = side_by_side(lambda cell: looked_at(config, nets[cell], pictures, seed), cells, WORKERS)
    dims = {"kept": ("row", "point"), "proved": ("sure",), "left": ("sure",)}
    return xr.Dataset(
        {
            name: (
                ("p", "epoch", *dims.get(name, ())),
                np.stack([one[name] for one in seen]).reshape(
                    len(ps), len(epochs), *np.shape(seen[0][name])
                ),
            )
            for name in seen[0]
        },
        coords={"p": ps, "epoch": epochs, "row": list(NORMS)},
    )


def nets_by_epoch(
    config: Overtraining, bench: Bench, pictures: Pictures, seed: int
) -> dict[tuple[float, int], PolyReLUNet]:
    """A copy of the net of each p after each of the epochs; a training sees the points in its own order."""
    starts = starts_of(config, bench, [seed], pictures.centre)
    ps = list(config.p)
    found: dict[tuple[float, int], PolyReLUNet] = {}

    def watch(epoch: int, nets: tuple[PolyReLUNet, ...]) -> None:
        if epoch in config.at:
            for p, net in zip(ps, nets, strict=True):
                one = net.members()[0]
                b = None if one.b is None else one.b.clone()
                found[p, epoch] = replace(one, w=one.w.clone(), v=one.v.clone(), b=b)

    train_logits(
        [starts[p].to(bench.device) for p in ps],
        pictures.x,
        pictures.y,
        epochs=config.epochs,
        batch=min(config.batch, len(pictures.x)),
        generator=bench.generator("order", seed=seed),
        step=config.step,
        watch=watch,
        workers=WORKERS,
    )
    return found


def looked_at(
    config: Overtraining, net: PolyReLUNet, pictures: Pictures, seed: int
) -> dict[str, np.ndarray | float]:
    """One net: attacked, certified, and read without an attack."""
    x, y = pictures.test_x[: config.points], pictures.test_y[: config.points]
    means = rival_means(pictures.x, pictures.y)
    kept = [
        ~apgd(
            net, x, y, [getattr(config, kind)], norm=norm, box=BOX, means=means,
            steps=config.steps, seed=seed,
        ).broken[0]
        for kind, norm in NORMS.items()
    ]  # fmt: skip
    sure = slice(0, config.certified)
    at = torch.tensor([config.proof], dtype=torch.float64, device=x.device)
    proved = logits_certified(net, x[sure], y[sure], at, norm="2")[0]
    near = apgd(
        net, x[sure], y[sure], [config.proof], norm="2", box=BOX, means=means, steps=config.steps, seed=seed
    )  # fmt: skip
    rest = slice(config.points, config.points + SHOWN)
    return {
        "kept": torch.stack(kept).cpu().numpy().astype(np.int8),
        "proved": proved.cpu().numpy().astype(np.int8),
        "left": (~near.broken[0]).cpu().numpy().astype(np.int8),
        **without_attack(net, pictures.test_x[rest], pictures.test_y[rest]),
        "train": mean_loss(net, pictures.x[:SHOWN], pictures.y[:SHOWN]),
    }


def without_attack(net: PolyReLUNet, x: Rows, y: Int64[Tensor, " n"]) -> dict[str, float]:
    """The indicators of the module's docstring but for the last."""
    _, apart, steep = loss_and_gradient(target_of(net, tuple(x.shape[1:])), x, y, margin)
    size = float((net.v.abs() * net.w.norm(dim=1)).sum())
    length = steep.double().norm(dim=1).clamp_min(torch.finfo(torch.float32).tiny)
    return {
        "loss": mean_loss(net, x, y),
        "accuracy": float((apart > 0).double().mean()),
        "distance": float((apart.double() / length).median()),
        "margin": float(apart.double().median()) / size,
        "size": size,
    }


def mean_loss(net: PolyReLUNet, x: Rows, y: Int64[Tensor, " n"]) -> float:
    """The mean cross-entropy."""
    return -float(cross_entropy(net(x), y).double().mean())
