"""Figure 1: neurons in three dimensions, from the same small start for p = 1 and p = 3.

D = K = 3, K1 = 2: mu_1 and mu_2 are positive, mu_3 is negative, x = mu_z + N(0, alpha^2/D I). The start is the
balanced one, (4). The loss is exponential, its mean over the samples (with the sum (1), all is n times sooner).

Expected, and written before any run: the mass |v_j| ||w_j|| of a neuron counts for a direction where their cosine
is at least .95. *Settled* is the first moment from which on the angle of a neuron to its last direction, averaged
with the last masses, stays below 5 degrees; at most a hundredth of the last total mass is there by then. In F^(3)
both positive centres have the same weight, so that each has half of the positive mass.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from tacit.base.estimate import most
from tacit.base.shapes import Rows
from tacit.data import Samples, min2024_mixture
from tacit.lab import Bench, Claim, Expected, Outcome
from tacit.measure import mean_of, proportion
from tacit.measure.neurons import learned_directions
from tacit.nets import TwoLayerNet
from tacit.papers._shared.sphere import (
    Globe,
    Moments,
    balanced_start,
    clock,
    decades,
    key,
    lengths,
    moments,
    play,
    view,
)
from tacit.papers._shared.universal import MOST, MOST_BAR
from tacit.papers.min2024.fig1.settings import Spheres
from tacit.train import Flowed, History, Until, gradient_flow

WHERE = "Section 4.1, Figure 1"
POWERS = (1.0, 3.0)
FRAME = view(azimuth=45, elevation=30)
NEAR, SETTLED, SMALL = 0.95, 5.0, 0.01  # a cosine, degrees, a share of the last mass or norm
TOLERANCE = 0.02  # of a step of the flow
CENTRES = torch.eye(3, dtype=torch.float64)
AVERAGES = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
LEARNED = {
    1.0: (AVERAGES, [[0], [1]]),
    3.0: (CENTRES, [[0, 1], [2]]),
}  # and whose they are: +1's, -1's

NONE = "there is no such neuron here: raise h or repeats"
FADES = (
    "at p > 1 a sample pushes by cos^(p-1), which fades as it ceases to activate the neuron: neurons that turn "
    "away from the other class slow down before they have left all of its samples (errata: Figure 1's note)"
)


def run(config: Spheres, bench: Bench) -> Outcome:
    """Follow every start with both activations, as one ensemble."""
    seeds = bench.seeds(config.repeats)
    drawn = [draw_samples(config, bench, seed) for seed in seeds]
    starts = [
        balanced_start(config.h, 3, config.eps, bench.generator("start", seed=seed))
        for seed in seeds
    ]
    x, y = (torch.stack([getattr(s, name) for s in drawn]).repeat(2, *dims)
            for name, dims in (("x", (1, 1)), ("y", (1,))))  # fmt: skip
    w, v = (torch.stack([getattr(s, name) for s in starts]).repeat(2, *dims)
            for name, dims in (("w", (1, 1)), ("v", (1,))))  # fmt: skip
    times = np.geomspace(0.1, config.time, config.frames - 1)
    flowed = gradient_flow(
        TwoLayerNet(w, v), x, y, until=Until(time=config.time), tolerance=TOLERANCE, merge_angle=0.0,
        record=times.tolist(), watch=torch.eye(3),
        powers=torch.tensor(POWERS, dtype=torch.float64).repeat_interleave(len(seeds)),
    )  # fmt: skip
    data = tabulated(flowed, moments(flowed, w, v, len(times)), seeds, times)
    data = data.assign(
        x=(("sample", "axis"), x[0].numpy()),
        y=(("sample",), y[0].numpy()),
        sign=(("neuron",), v[0].sign().numpy()),
    )
    nets = {f"p={p:g}": flowed.member(i * len(seeds)) for i, p in enumerate(POWERS)}
    return Outcome(data, tuple(claims(flowed, data, x, bench)), nets)


def draw_samples(config: Spheres, bench: Bench, seed: int) -> Samples:
    """The samples of a seed, as many for each cluster."""
    generator = bench.generator("samples", seed=seed)
    return min2024_mixture(3, 3, 2, config.alpha).sample(config.n, generator, equal_counts=True)


def tabulated(flowed: Flowed, seen: Moments, seeds: list[int], times: np.ndarray) -> xr.Dataset:
    """Loss, mass and angle of every seed over time (time 0 first); directions and lengths of the first seed."""
    shape = (len(POWERS), len(seeds), 1 + len(times))
    direction, mass = seen.direction, seen.mass
    cosine = (direction * direction[:, -1:]).sum(-1).clip(-1, 1)
    angle = (mass[:, -1:] * np.degrees(np.arccos(cosine))).sum(-1) / mass[:, -1].sum(-1)[:, None]
    loss = np.exp([[0.0, *past.log_loss] for past in flowed.history])  # f = 0 at the start, to 1e-9
    each = ("p", "seed", "time")
    return xr.Dataset(
        {
            "loss": (each, loss.reshape(shape)),
            "mass": (each, mass.sum(-1).reshape(shape)),
            "angle": (each, angle.reshape(shape)),
            "direction": (("p", "time", "neuron", "axis"), direction[:: len(seeds)]),
            "each_mass": (("p", "time", "neuron"), mass[:: len(seeds)]),
        },
        coords={"p": list(POWERS), "seed": seeds, "time": np.concatenate([[0.0], times])},
    )


def settled(data: xr.Dataset) -> xr.DataArray:
    """The index of the first moment from which on the mean angle stays below SETTLED."""
    above = data.angle >= SETTLED  # at the last moment it is 0
    after = above.sizes["time"] - above.isel(time=slice(None, None, -1)).argmax("time")
    return after.where(above.any("time"), 0).astype(int)


def claims(
    flowed: Flowed, data: xr.Dataset, x: Float[Tensor, "E n D"], bench: Bench
) -> Iterator[Claim]:
    """What the text and the caption say, over all trainings of each p."""
    judge = bench.claims(WHERE, source="words", bar="ours: written before any run",
                         regime="inside: K = 3 as drawn; samples, width and scale are not printed")  # fmt: skip
    count = data.sizes["seed"]
    early = (data.mass / data.mass.isel(time=-1)).isel(time=settled(data))
    over = "trainings"
    longest = []
    for i, p in enumerate(POWERS):
        candidates, own = LEARNED[p]
        runs = range(i * count, (i + 1) * count)
        masses = [learned_directions(flowed.member(run), candidates).mass for run in runs]
        others = [neurons_elsewhere(flowed.history[run], candidates, own, x[run]) for run in runs]
        share = [min(float(m[side, own[side]].sum()) for side in (0, 1)) for m in masses]
        name = "class average" if p == 1 else "centres"
        text = f"p = {p:g}: mass of each sign within cosine {NEAR:g} of its {name} (the lesser sign's share)"
        id = "averages" if p == 1 else "centres"
        yield judge(id, text, Expected(min=0.95), mean_of(share, over=over))
        if p == 3:
            text = "p = 3: every centre is learned (the lesser of the two positive ones' shares of their mass)"
            lesser = mean_of([float(m[0, :2].min()) for m in masses], over=over)
            bar = "ours: F^(3) gives each one half; a fifth of that is allowed"
            yield judge("every", text, Expected(min=0.4), lesser, bar=bar)
        text = f"p = {p:g}: directions settle, to {SETTLED:g} degrees, while norms are small (share of last mass)"
        yield judge(f"settle.p{p:g}", text, Expected(max=SMALL), mean_of(early.sel(p=p), over=over))
        others = [one for one in others if one.number]
        text = f"p = {p:g}: no sample activates a neuron that points elsewhere at the end (share of trainings)"
        id = f"elsewhere.p{p:g}"
        if others:
            idle = proportion(sum(not one.active for one in others), len(others), over=over)
            yield judge(id, text, MOST, idle, because=FADES if p > 1 else "", bar=MOST_BAR)
            longest.append(mean_of([one.norm for one in others], of=2, over=over))
        else:
            yield judge.cannot(id, text, MOST, NONE)
    if longest:
        text = "neurons that point elsewhere at the end have small norms throughout (over the longest at the end)"
        yield judge("small", text, Expected(max=SMALL), most(longest))


@dataclass(frozen=True)
class Others:
    """Neurons that do not point where their sign should: how many, how many of them some sample activates, and
    the largest norm that one ever has, in units of the longest neuron at the end."""

    number: int
    active: int
    norm: float


def neurons_elsewhere(
    past: History, candidates: Float[Tensor, "m D"], own: list[list[int]], x: Rows
) -> Others:
    """The neurons of one flow that end away from the candidates of their sign."""
    u = past.cosines[-1]
    cosine = u @ (candidates / candidates.norm(dim=1, keepdim=True)).T
    near = torch.where(past.sign[-1] > 0, cosine[:, own[0]].amax(1), cosine[:, own[1]].amax(1))
    away = near < NEAR
    if not bool(away.any()):
        return Others(0, 0, 0.0)
    longest = past.log_mass[-1].max()
    norm = float(((past.log_mass[:, away].max() - longest) / 2).exp())
    return Others(int(away.sum()), int((away & (u @ x.T > 0).any(1)).sum()), norm)


def draw(data: xr.Dataset, config: Spheres) -> Figure:
    """The five panels of the paper, and beside them when directions and masses change."""
    figure = Figure(figsize=(11.6, 5.4))
    grid = figure.add_gridspec(2, 4, width_ratios=[1.0, 1.0, 1.0, 1.12])
    side = grid[:, 0].subgridspec(3, 1, height_ratios=[0.45, 1.0, 0.55])
    start = figure.add_subplot(side[1])
    globe(start, data.sel(p=1), 0)
    start.set_title("(a) one small start", loc="center")
    legend = figure.add_subplot(side[2])
    legend.set_axis_off()
    key(legend, loc="upper center")
    when = settled(data).isel(seed=0)
    last = data.sizes["time"] - 1
    for row, (p, letters) in enumerate(zip(POWERS, ("bc", "de"), strict=True)):
        stages = ((int(when.sel(p=p)), "aligned"), (last, "grown"))
        for column, (moment, name) in enumerate(stages):
            axes = figure.add_subplot(grid[row, column + 1])
            globe(axes, data.sel(p=p), moment)
            at = clock(float(data.time[moment]))
            axes.set_title(f"({letters[column]}) $p$ = {p:g}, {name}: {at}", loc="center")
    top = figure.add_subplot(grid[0, 3])
    bottom = figure.add_subplot(grid[1, 3], sharex=top)
    for index, p in enumerate(POWERS):
        for axes, name in ((top, "angle"), (bottom, "mass")):
            curves = data[name].sel(p=p).isel(time=slice(1, None))
            colour, style = f"C{2 + index}", "-" if index == 0 else "--"
            ends = (curves.min("seed"), curves.max("seed"))
            axes.fill_between(curves.time, *ends, color=colour, alpha=0.25, linewidth=0)
            axes.plot(curves.time, curves.isel(seed=0), style, color=colour, label=f"$p$ = {p:g}")
    top.axhline(SETTLED, color="0.4", linestyle=":", linewidth=1)
    top.annotate(
        f"{SETTLED:g}°", (data.time[1], SETTLED), xytext=(3, 2), textcoords="offset points"
    )
    top.set(ylim=(0, None), title="directions settle first …")
    top.set_ylabel("mean angle to the end (degrees)")
    top.tick_params(labelbottom=False)
    bottom.set(title="… then norms grow", ylabel=r"total mass $\sum_j |v_j|\,\|w_j\|$")
    bottom.legend(loc="upper left")
    decades(bottom, data.time.values[1:])
    return figure


def globe(axes: Axes, data: xr.Dataset, moment: int | None, *, moving: bool = False) -> Globe:
    """The sphere of one p with data, centres and averages; neurons at a moment, lengths in units of the last."""
    picture = Globe(axes, FRAME, data.sign.values, moving=moving)
    picture.data(data.x.values, data.y.values)
    for k in range(3):
        picture.landmark(CENTRES[k].numpy(), rf"$\mu_{k + 1}$")
    picture.landmark(AVERAGES[0].numpy(), r"$\bar\mu_+$", style="--", label=(0.17, -0.56))
    if moment is not None:
        picture.show(data.direction.values[moment], lengths(data.each_mass.values)[moment])
    return picture


def animate(data: xr.Dataset, config: Spheres) -> Iterator[Figure]:
    """Both spheres side by side over the loss, with a mark that moves in time."""
    figure = Figure(figsize=(7.2, 4.9))
    figure.set_layout_engine("none")  # it would have to be found anew in every frame
    edges = {"left": 0.1, "right": 0.97, "top": 0.93, "bottom": 0.11}
    grid = figure.add_gridspec(2, 2, height_ratios=[3.4, 1], hspace=0.12, wspace=0.02, **edges)
    globes, losses = [], {}
    for column, p in enumerate(POWERS):
        here = data.sel(p=p)
        axes = figure.add_subplot(grid[0, column])
        axes.set_title(f"$p$ = {p:g}", loc="center")
        picture = globe(axes, here, None, moving=True)
        globes.append((picture, here.direction.values, lengths(here.each_mass.values)))
        losses[f"$p$ = {p:g}"] = here.loss.isel(seed=0).values
    return play(figure, figure.add_subplot(grid[1, :]), globes, data.time.values, losses)
