r"""Table 1: the digits of MNIST, clean and under linf, l2 and l1 attacks in the box [0, 1], p = 1, ..., 4.

Nets as in Figure 6, trained on the first 50,000 of MNIST's training images and tested on the last 10,000, as the
released code does. Clean accuracy is that of all test points. The attack is the table's: APGD on the
cross-entropy, one random start. For l1 the released code's AutoAttack restarts five times, and begins in larger
balls each time (Croce & Hein 2021), as here. Whether a stronger attack says the same is the matter
of `min2024.table1_strict`.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from tacit.lab import Bench, Outcome
from tacit.measure import mean_of
from tacit.papers.min2024.images.claims import other_data, sampling_error, setting_of
from tacit.papers.min2024.images.nets import Attack, outlived, pictures_of, unbroken
from tacit.papers.min2024.images.settings import regime_of
from tacit.papers.min2024.images.training import trained_nets
from tacit.papers.min2024.table1.claims import NUMBERS, claims, printed
from tacit.papers.min2024.table1.figure import norm_panel, table_panel
from tacit.papers.min2024.table1.settings import Table

NORMS = {"linf": "inf", "l2": "2", "l1": "1"}


def run(config: Table, bench: Bench) -> Outcome:
    """Train, attack in three norms, judge."""
    bench.tell(other_data(config, bench))
    pictures = pictures_of(config.dataset, config.classes)
    nets, curves = trained_nets(config, bench, pictures)
    left = {}
    for kind, norm in NORMS.items():
        points, restarts = config.points, 1
        if kind == "l1":
            points, restarts = config.points_l1, config.restarts_l1
        left[kind] = outlived(
            nets,
            bench,
            pictures,
            Attack(norm, getattr(config, kind), points),
            steps=config.steps,
            starts=("random",) * restarts,
            larger_balls=restarts > 1,
        )
    data = table_of(
        curves.test_accuracy.isel(epoch=-1, drop=True), left, config, len(pictures.test_x)
    )
    saved = {f"p{p:g}-seed{bench.seed}": nets[p, bench.seed] for p in config.p}
    return Outcome(data, tuple(claims(data, config, bench)), saved)


def table_of(
    clean: xr.DataArray, left: dict[str, xr.DataArray], config: Table, N: int
) -> xr.Dataset:
    """`accuracy` (row, p, seed), the half-width of its mean and the paper's number (row, p); N test points.

    A row is clean accuracy or a norm (`kind`) with a radius; `outlived_...` says what each point went through.
    """
    rows = [("clean", 0.0, N, clean)]
    for kind, each in left.items():
        radii = tuple(sorted(getattr(config, kind)))
        robust = unbroken(each, radii).mean("point")
        rows += [(kind, r, each.sizes["point"], robust.sel(radius=r, drop=True)) for r in radii]
    kinds, radii, points, values = zip(*rows, strict=True)
    accuracy = np.stack([v.sel(p=list(config.p)).transpose("p", "seed").values for v in values])
    accuracy = accuracy.astype(np.float64)
    of_points = [sampling_error(a.mean(1), n, N) for a, n in zip(accuracy, points, strict=True)]
    half = np.stack(of_points)
    if accuracy.shape[2] > 1:
        half = np.hypot(half, [[mean_of(cell).spread for cell in row] for row in accuracy])
    paper = [[printed(NUMBERS, (kind, r), p) for p in config.p] for kind, r, *_ in rows]
    data = xr.Dataset(
        {
            "accuracy": (("row", "p", "seed"), accuracy),
            "half": (("row", "p"), half),
            "paper": (("row", "p"), np.array(paper)),
            "points": ("row", np.array(points)),
        },
        coords={
            "p": list(config.p),
            "seed": clean.seed.values,
            "kind": ("row", list(kinds)),
            "radius": ("row", list(radii)),
        },
        attrs={"test_points": N},
    )
    return data.assign(
        {f"outlived_{kind}": each.rename({"point": f"point_{kind}"}) for kind, each in left.items()}
    )


def draw(data: xr.Dataset, config: Table) -> Figure:
    """Measured and printed numbers: as a table, and over p for each norm; the paper's for its setting alone."""
    if not regime_of(config, classes=10).startswith("inside"):
        data = data.assign(paper=xr.full_like(data.paper, np.nan))
    figure = Figure(figsize=(13.5, 3.9))
    grid = figure.add_gridspec(1, 4, width_ratios=[1.75, 1, 1, 1])
    table_panel(figure.add_subplot(grid[0]), data, config)
    for column, kind in enumerate(NORMS, start=1):
        norm_panel(figure.add_subplot(grid[column]), data, kind, chr(ord("a") + column))
    figure.suptitle(setting_of(config), fontsize="medium")
    return figure
