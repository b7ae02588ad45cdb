r"""Figures 3 and 6: PolyReLU nets on MNIST, its digits by parity or each a class.

Correlation of the data, accuracy and stable rank epoch by epoch, robust accuracy over the linf radius. The last
panel is not in the paper: test images, and the smallest change that breaks the nets of the least and largest p
(by APGD on the margin in the box [0, 1], at the smallest of a grid of linf radii).

At laptop scale three nets of each p are trained for 12 epochs instead of 51, and 300 test points are attacked.
"""

import torch
import xarray as xr
from matplotlib.figure import Figure

from tacit.attack import apgd, margin
from tacit.base.linalg import unit_rows
from tacit.lab import Bench, Outcome
from tacit.nets import PolyReLUNet
from tacit.papers.min2024.fig3.digits import digit_panel, towards_digits
from tacit.papers.min2024.fig3.figure import (
    accuracy_panel,
    correlation_panel,
    picture_panel,
    rank_panel,
    robust_panel,
)
from tacit.papers.min2024.fig3.raw import raw_accuracy
from tacit.papers.min2024.fig3.settings import Curves
from tacit.papers.min2024.images.claims import curve_claims, other_data, setting_of
from tacit.papers.min2024.images.nets import (
    BOX,
    Attack,
    Pictures,
    outlived,
    pictures_of,
    unbroken,
)
from tacit.papers.min2024.images.training import Watched, trained_nets

PICTURES = 10  # test images shown, one a label
LOOKED_AT = 1000  # test points among which they are found
PARITY = 2
CHANGES = tuple(round(0.02 * k, 2) for k in range(16))


def run(config: Curves, bench: Bench) -> Outcome:
    """Train, attack, judge."""
    bench.tell(other_data(config, bench))
    pictures = pictures_of(config.dataset, config.classes)
    watched = Watched(config.shown, tuple(range(config.epochs + 1)))
    nets, curves = trained_nets(config, bench, pictures, watched)
    attack = Attack("inf", config.radius, config.points)
    left = outlived(nets, bench, pictures, attack, steps=config.steps)
    first = {p: nets[p, bench.seed] for p in config.p}
    whole = {
        "outlived": left,
        "robust": unbroken(left, config.radius).mean("point"),
        **correlations(pictures, config.each),
        **broken_pictures(first, pictures, config.steps),
    }
    if config.classes == PARITY:
        whole |= towards_digits(nets, pictures)
        if config.layer != "raw":
            whole |= raw_accuracy(config, bench, pictures, watched)
    data = curves.assign(whole).assign_attrs(test_points=len(pictures.test_x))
    saved = {f"p{p:g}-seed{bench.seed}": net for p, net in first.items()}
    return Outcome(data, tuple(curve_claims(data, config, bench)), saved)


def correlations(pictures: Pictures, each: int) -> dict[str, xr.DataArray]:
    """cos(x_i, x_j) of centred training points, the first `each` of every label, sorted by label."""
    kinds = pictures.kind.unique().tolist()
    rows = torch.cat([(pictures.kind == kind).nonzero().squeeze(1)[:each] for kind in kinds])
    c = (pictures.x[rows] - pictures.centre).double()
    u, _ = unit_rows(c)
    return {
        "correlation": xr.DataArray((u @ u.T).numpy(), dims=("map_row", "map_column")),
        "label": xr.DataArray(pictures.kind[rows].numpy(), dims="map_row"),
    }


def broken_pictures(
    nets: dict[float, PolyReLUNet], pictures: Pictures, steps: int
) -> dict[str, xr.DataArray]:
    """A test image of each label, one that the nets get right if there is one, and what breaks them.

    `picture` has the image as it is, then broken for the least and the largest p (version, image, height, width,
    channel); `needed` is the smallest linf radius of `CHANGES` at which APGD on the margin breaks the net: 0
    where it is wrong on the image as it is, inf where none does.
    """
    ends = sorted({min(nets), max(nets)})
    device = nets[ends[0]].w.device
    x, y, kind = (
        t[:LOOKED_AT].to(device) for t in (pictures.test_x, pictures.test_y, pictures.test_kind)
    )
    right = torch.stack([margin(nets[p](x), y) > 0 for p in ends]).all(0)
    of_kind = [(kind == k).nonzero().squeeze(1) for k in kind.unique()[:PICTURES]]
    # the first that is right; argmax finds the first of all where none is
    rows = torch.stack([found[right[found].long().argmax()] for found in of_kind])
    at, label = x[rows], y[rows]
    changes, needed = [torch.zeros_like(at)], [torch.zeros_like(at[:, 0])]
    for p in ends:
        found = apgd(
            nets[p], at, label, CHANGES, norm="inf", box=BOX, starts=("gradient",), steps=steps
        )
        # the first radius that breaks; the last one where none does
        first = (~found.broken).sum(0).clamp(max=len(CHANGES) - 1)
        changes.append(found.delta[first, torch.arange(len(at), device=at.device)])
        needed.append(torch.where(found.broken[-1], found.radii[first], torch.inf))
    shape = (len(changes), len(at), *pictures.shape)
    versions = ["as it is", *(f"p = {p:g}" for p in ends)]
    return {
        "picture": xr.DataArray(
            (at + torch.stack(changes)).reshape(shape).cpu().numpy(),
            dims=("version", "image", "height", "width", "channel"),
            coords={"version": versions},
        ),
        "needed": xr.DataArray(torch.stack(needed).cpu().numpy(), dims=("version", "image")),
    }


def draw(data: xr.Dataset, config: Curves) -> Figure:
    """(a) correlation, (b) accuracy, (c) stable rank, (d) robust accuracy, of parity neurons and digits;
    below, images and what breaks them."""
    digits = "at_digit" in data
    figure = Figure(figsize=(16.5 if digits else 13.5, 6.6))
    grid = figure.add_gridspec(2, 1, height_ratios=[1, 0.95])
    top = grid[0].subgridspec(1, 4 + digits, width_ratios=[1.15, 1, 1, 1, 1][: 4 + digits])
    correlation_panel(figure.add_subplot(top[0]), data)
    accuracy_panel(figure.add_subplot(top[1]), data, config)
    rank_panel(figure.add_subplot(top[2]), data, config)
    robust_panel(figure.add_subplot(top[3]), data, config)
    if digits:
        digit_panel(figure.add_subplot(top[4]), data)
    picture_panel(figure, grid[1], data)
    figure.suptitle(setting_of(config), fontsize="medium")
    return figure
