r"""Is it real? The nets of Table 1 under attacks that saturated losses and small gradients cannot fool.

The paper measures robustness by APGD on the cross-entropy from one random start. The cross-entropy saturates
where margins are large, and relu(z)^p has a vanishing gradient near its kink for p > 1: either could make p = 4
look better than it is (Athalye et al. 2018; Croce & Hein 2020). So the same nets, points and radii go through
every attack of `strict_attacks`; a point counts as broken if any of them breaks it (`worst`). From below there
are certificates. The truth lies in [proved, worst].

tacit's APGD divides the cross-entropy's derivative by its size before it is pulled back, and takes the margin's
where it is exactly 0; `slope` and `flat` say on how many points that matters.
"""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from tacit.lab import Bench, Outcome
from tacit.papers.min2024.images.claims import other_data, setting_of
from tacit.papers.min2024.images.nets import Nets, Pictures, pictures_of
from tacit.papers.min2024.images.training import trained_nets
from tacit.papers.min2024.table1_strict.attacks import (
    GRADIENT,
    NORMS,
    Trial,
    gradients,
    rival_means,
    tried,
)
from tacit.papers.min2024.table1_strict.claims import claims
from tacit.papers.min2024.table1_strict.figure import (
    gain_panel,
    gradient_panel,
    interval_panel,
    radius_panel,
    transfer_panel,
)
from tacit.papers.min2024.table1_strict.settings import Strict

OF_NORM = ["far", "minimal", "proved_radius"]


def run(config: Strict, bench: Bench) -> Outcome:
    """Train, attack in every way, certify, judge."""
    bench.tell(other_data(config, bench))
    pictures = pictures_of(config.dataset, config.classes).to(bench.device)
    nets, curves = trained_nets(config, bench, pictures)
    seeds = bench.seeds(config.repeats)
    cells = [(seed, kind) for seed in seeds for kind in NORMS]
    parts = {
        cell: bench.part(
            f"strict-{cell[1]}-{cell[0]}", partial(examined, config, nets, pictures, *cell)
        )
        for cell in bench.steps(cells, "norms, all attacks each")
    }
    data = joined([[parts[seed, kind] for kind in NORMS] for seed in seeds], seeds)
    clean = curves.test_accuracy.isel(epoch=-1, drop=True).sortby("p")
    data = data.assign(slopes(config, nets, pictures) | accuracies(data) | {"clean": clean})
    data = data.assign_attrs(test_points=len(pictures.test_x))
    saved = {f"p{p:g}-seed{bench.seed}": nets[p, bench.seed] for p in config.p}
    return Outcome(data, tuple(claims(data, config, bench)), saved)


def examined(config: Strict, nets: Nets, pictures: Pictures, seed: int, kind: str) -> xr.Dataset:
    """All attacks on the nets of one seed in one norm."""
    x, y = pictures.test_x[: config.points], pictures.test_y[: config.points]
    means = rival_means(pictures.x, pictures.y)
    trial = Trial(config, x, y, means, pictures.shape, kind, seed)
    return tried(trial, {p: nets[p, seed] for p in sorted(config.p)})


def joined(parts: list[list[xr.Dataset]], seeds: list[int]) -> xr.Dataset:
    """Seeds and norms as dimensions of one data set."""
    along = xr.Variable("seed", seeds)
    whole = [xr.concat(list(of_kind), along) for of_kind in zip(*parts, strict=True)]
    by_row = xr.concat([part.drop_vars([*OF_NORM, "kind"]) for part in whole], "row")
    by_norm = xr.concat(
        [part[OF_NORM].drop_vars(["radius", "norm"], errors="ignore") for part in whole], "kind"
    )
    return xr.merge([by_row, by_norm])


def slopes(config: Strict, nets: Nets, pictures: Pictures) -> dict[str, xr.DataArray]:
    """Losses, margins and gradients at the clean points, (p, seed, point) each."""
    x, y = pictures.test_x[: config.points], pictures.test_y[: config.points]
    seeds = sorted({seed for _, seed in nets})
    ps = sorted(config.p)
    found = [[gradients(nets[p, seed], x, y) for seed in seeds] for p in ps]
    return {
        name: xr.DataArray(
            np.array([[one[name] for one in row] for row in found]),
            dims=("p", "seed", "point"),
            coords={"p": ps, "seed": seeds},
        )
        for name in found[0][0]
    }


def accuracies(data: xr.Dataset) -> dict[str, xr.DataArray]:
    """Robust accuracy of each attack on the points it tried, and of the worst case of all of them.

    `by_gradients` is the worst case of the attacks by gradients alone; `kept_...` are the points that are left.
    """
    tested = data.broken >= 0
    kept = ~(data.broken == 1).any("attack")
    by_gradients = ~(data.broken.sel(attack=list(GRADIENT)) == 1).any("attack")
    return {
        "robust": (data.broken == 0).where(tested).mean("point"),
        "kept": kept.astype(np.int8),
        "kept_by_gradients": by_gradients.astype(np.int8),
        "worst": kept.mean("point"),
        "transfer_left": (data.transferred == 0).mean("point"),
    }


def draw(data: xr.Dataset, config: Strict) -> Figure:
    """Certified, worst case and paper by norm; what is left of the gain; transfer, radii, gradients."""
    figure = Figure(figsize=(13.0, 7.4))
    grid = figure.add_gridspec(2, 12)
    for column, kind in enumerate(NORMS):
        axes = figure.add_subplot(grid[0, 4 * column : 4 * column + 4])
        interval_panel(axes, data, kind, "abc"[column])
    gain_panel(figure.add_subplot(grid[1, 0:3]), data, "d")
    transfer_panel(figure.add_subplot(grid[1, 3:6]), data, "e")
    radius_panel(figure.add_subplot(grid[1, 6:9]), data, "f")
    gradient_panel(figure.add_subplot(grid[1, 9:12]), data, "g")
    figure.suptitle(setting_of(config), fontsize="medium")
    return figure
