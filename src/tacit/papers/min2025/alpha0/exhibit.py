"""The poster's illustrative example: alpha = 0, two +1 clusters; neurons in the plane, over time.

x_1 = mu_1 and x_2 = mu_2 are orthonormal with y = +1, the loss is exponential and summed as on the poster, the
start balanced (min2024, (4)). At angle phi from mu_1 the alignment field, min2024 (5) and (6), turns a neuron by

    phi' = sign(v) p ( relu(sin phi)^(p-1) cos phi - relu(cos phi)^(p-1) sin phi )    (relu(.)^0: 1 where active)

Between the centres (0 < phi < 90 degrees) this is, for v > 0: p = 1: back to 45 degrees, tan((phi - 45)/2) falls
as e^(-sqrt(2) t); p = 2: zero; p > 2: away from 45 degrees to the closer centre (min2024, D.1, (52)-(54)).
A neuron that one centre alone activates turns to that one, whatever p: at p = 1 too it never sees the average.

Expected, and written before any run. The alignment phase is as long as sum_j |v_j| ||w_j|| <= 1e-3: there |f| is
as small, and directions differ from those of the field by at most the integral of 2 K p |f|, about .001 K p.
All angles below are allowed one degree. At the end 95% of the mass is within cosine .95 of what is learned.

The field is compared for v > 0 alone. At p = 1 a neuron with v < 0 between the centres is driven out and meets,
after a finite time, a centre, where the other one lets go of it; there phi' = 0, and the way on is unstable. Flow
in the sense of Clarke (min2024, Section 2) may stay there, or leave at any time: it is not unique.
"""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.lab import Bench, Claim, Expected, Judge, Outcome
from tacit.measure import mean_of
from tacit.nets import TwoLayerNet
from tacit.papers._shared.sphere import (
    FROM_ABOVE,
    SIGNS,
    Array,
    Globe,
    balanced_start,
    decades,
    lengths,
    moments,
    play,
)
from tacit.papers._shared.universal import for_every
from tacit.papers.min2025.alpha0.settings import Circle
from tacit.train import Until, gradient_flow

WHERE, OBSERVED = "Poster, Crucial role of implicit bias", "Poster, Observations"
PLANE = WHERE + "; min2024, Appendix D.1"
CENTRES = torch.eye(2, dtype=torch.float64)
LABELS = torch.ones(2, dtype=torch.float64)
ALIGNING = 1e-3  # total mass up to which a moment belongs to the alignment phase
DEGREE = Expected(max=1.0)
DEGREE_BAR = (
    "ours: one degree, written before any run: |f| <= .001 turns a neuron by .001 K p, .3 at p = 3"
)
NONE = "there is no such neuron here: raise h or repeats"
NEAR = 0.95  # a cosine, and a share of the mass
TOLERANCE = 1e-4  # of a step of the flow
FINE = 0.01  # step of the field's own equation


def run(config: Circle, bench: Bench) -> Outcome:
    """Follow every start with each activation, and beside it the alignment field alone."""
    seeds = bench.seeds(config.repeats)
    starts = [
        balanced_start(config.h, 2, config.eps, bench.generator("start", seed=seed))
        for seed in seeds
    ]
    w = torch.stack([net.w for net in starts]).repeat(len(config.p), 1, 1)
    v = torch.stack([net.v for net in starts]).repeat(len(config.p), 1)
    times = np.geomspace(0.05, config.time, config.frames - 1)
    flowed = gradient_flow(
        TwoLayerNet(w, v), CENTRES, LABELS, until=Until(time=config.time),
        sample_weight=torch.ones_like(LABELS), tolerance=TOLERANCE, merge_angle=0.0,
        record=times.tolist(), watch=torch.eye(2),
        powers=torch.tensor(config.p, dtype=torch.float64).repeat_interleave(len(seeds)),
    )  # fmt: skip
    seen = moments(flowed, w, v, len(times))
    shape = (len(config.p), len(seeds), 1 + len(times), config.h)
    dims = ("p", "seed", "time", "neuron")
    log_loss = [[math.log(2), *past.log_loss] for past in flowed.history]
    data = xr.Dataset(
        {
            "phi": (dims, np.degrees(unwound(seen.direction.reshape(*shape, 2)))),
            "mass": (dims, seen.mass.reshape(shape)),
            "loss": (dims[:3], np.exp(log_loss).reshape(shape[:3])),
            "sign": (("seed", "neuron"), v[: len(seeds)].sign().numpy()),
        },
        coords={"p": list(config.p), "seed": seeds, "time": np.concatenate([[0.0], times])},
    )
    data["aligning"] = data.mass.sum("neuron") <= ALIGNING
    data["theory"] = (dims, np.stack([with_theory(data.sel(p=p), p) for p in config.p]))
    nets = {f"p={p:g}": flowed.member(i * len(seeds)) for i, p in enumerate(config.p)}
    return Outcome(data, tuple(claims(data, config, bench)), nets)


def with_theory(data: xr.Dataset, p: float) -> Array:
    """The field's angles (seed, time, neuron), degrees, as long as any seed is aligning; NaN from there on."""
    early = int(data.aligning.any("seed").sum())
    out = np.full(data.phi.shape, np.nan)
    start = np.radians(data.phi.values[:, 0])
    out[:, :early] = np.degrees(followed(start, data.sign.values, p, data.time.values[:early]))
    return out


def unwound(u: Array) -> npt.NDArray[np.float64]:
    """Angles from mu_1 of directions (..., time, neuron, 2), continuous in time, in (-pi, pi] at first."""
    return np.unwrap(np.arctan2(u[..., 1], u[..., 0]), axis=-2)


def followed(phi: Array, sign: Array, p: float, times: Array) -> Array:
    """Angles (seed, time, neuron) from phi (seed, neuron) by the field alone: the midpoint rule, small steps."""
    found, now = [phi], 0.0
    for time in times[1:]:
        steps = math.ceil((time - now) / FINE)
        length = (time - now) / steps
        for _ in range(steps):
            half = phi + turning(phi, sign, p) * length / 2
            phi = phi + turning(half, sign, p) * length
        found.append(phi)
        now = time
    return np.stack(found, 1)


def turning(phi: Array, sign: Array, p: float) -> Array:
    """phi' of the alignment field, as above."""
    x, y = np.cos(phi), np.sin(phi)
    up, down = (y > 0) * np.abs(y) ** (p - 1) * x, (x > 0) * np.abs(x) ** (p - 1) * y
    return np.asarray(sign * p * (up - down))


def claims(data: xr.Dataset, config: Circle, bench: Bench) -> Iterator[Claim]:
    """What is expected of each p, at the end of the alignment phase and during it: of every start."""
    judge = bench.claims(WHERE, source="formula", bar=DEGREE_BAR,
                         regime="inside: alpha = 0, two +1 clusters; width and scale are ours")  # fmt: skip
    first = data.phi.isel(p=0, time=0)
    positive = data.sign > 0
    between = positive & (first > 0) & (first < 90)
    lone = positive & (((first > -90) & (first <= 0)) | ((first >= 90) & (first < 180)))
    closer = 90.0 * (first >= 45)

    def largest(judge: Judge, id: str, text: str, angle: xr.DataArray, who: xr.DataArray) -> Claim:
        """For every start: at most a degree, of all these neurons; starts without such neurons do not count."""
        text, each = f"{text}: degrees away", angle.where(who).max("neuron").dropna("seed")
        if not each.size:
            return judge.cannot(id, text, DEGREE, NONE)
        return for_every(judge, id, text, DEGREE, each, over="starts")

    for p in config.p:
        early, phi = data.aligning.sel(p=p), data.phi.sel(p=p)
        last, end = phi.isel(time=early.sum("time") - 1), data.sel(p=p).isel(time=-1)
        here = f"p = {p:g}: neurons between the centres "
        if p == 2:
            moved = abs(phi - first).where(early).max("time")
            text = here + "keep still in the alignment phase"
            yield largest(judge.but(where=PLANE + ", (53)"), "p2.still", text, moved, between)
        else:
            name, to, goal, number = ("average", "the average", 45.0, "52") if p < 2 else (
                "closer", "the closer one", closer, "54")  # fmt: skip
            text = f"{here}end the alignment phase at {to}"
            there = judge.but(where=f"{PLANE}, ({number})")
            yield largest(there, f"p{p:g}.{name}", text, abs(last - goal), between)
            goals, what = ((45.0,), "the average") if p < 2 else ((0.0, 90.0), "the centres")
            near = sum(np.cos(np.radians(end.phi - goal)) >= NEAR for goal in goals) > 0
            share = end.mass.where(near, 0).sum("neuron") / end.mass.sum("neuron")
            text = f"p = {p:g}: at the end the mass is within cosine {NEAR:g} of {what} (share)"
            yield judge(f"p{p:g}.learned", text, Expected(min=NEAR), mean_of(share, over="starts"),
                        where=OBSERVED, source="words", bar="ours: 95%, written before any run")  # fmt: skip
        if p == 1:
            text = "p = 1: neurons that one centre alone activates end at that centre, not at the average"
            yield largest(judge.but(source="ours"), "p1.lone", text, abs(last - closer), lone)
        gap = abs(phi - data.theory.sel(p=p)).where(early).max("time")
        text = f"p = {p:g}: neurons with v > 0 follow the alignment field in the alignment phase"
        yield largest(judge, f"p{p:g}.field", text, gap, positive)


def draw(data: xr.Dataset, config: Circle) -> Figure:
    """Above: the circle at the end, with the way of each neuron; below: angles over time, with the field's."""
    count = len(config.p)
    figure = Figure(figsize=(3.5 * count, 6.4))
    axes = figure.subplots(2, count, squeeze=False)
    for column, p in enumerate(config.p):
        here = data.sel(p=p).isel(seed=0)
        picture = circle(axes[0, column], here)
        way = on_circle(here.phi.values)
        picture.show(way[-1], lengths(here.mass.values)[-1], way)
        where = (
            "to the average"
            if p < 2
            else "neurons keep still"
            if p == 2
            else "to the closer centre"
        )
        axes[0, column].set_title(f"$p$ = {p:g}: {where}", loc="center")
        angles(axes[1, column], here)
    axes[1, 0].set_ylabel(r"angle of $w_j$ from $\mu_1$ (degrees)")
    handles = axes[1, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3)
    return figure


def on_circle(degrees: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The directions of these angles."""
    return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], -1)


def circle(axes: Axes, data: xr.Dataset, *, moving: bool = False) -> Globe:
    """The circle of one p with its centres and their average."""
    picture = Globe(axes, FROM_ABOVE, data.sign.values, moving=moving)
    picture.data(CENTRES.numpy(), LABELS.numpy())
    picture.landmark(CENTRES[0].numpy(), r"$\mu_1$")
    picture.landmark(CENTRES[1].numpy(), r"$\mu_2$")
    picture.landmark(np.ones(2), r"$\bar\mu_+$", style="--")
    return picture


def angles(axes: Axes, data: xr.Dataset) -> None:
    """The angle of every neuron over time; wide and pale beneath it, the field's own for those with v > 0."""
    late = data.isel(time=slice(1, None))
    positive = (data.sign > 0).values
    field = late.theory.isel(neuron=positive).where(late.aligning)
    axes.plot(late.time, field, color="0.82", linewidth=4.5, solid_capstyle="butt", zorder=1)
    axes.plot([], [], color="0.82", linewidth=4.5, label="alignment field")
    for sign, colour in SIGNS.items():
        mine = late.phi.isel(neuron=(data.sign == sign).values)
        axes.plot(late.time, mine, color=colour, linewidth=1.0, alpha=0.85)
        axes.plot([], [], color=colour, linewidth=1.0, label=f"$v_j {'>' if sign > 0 else '<'} 0$")
    end = float(data.time[int(data.aligning.sum()) - 1])
    axes.axvline(end, color="0.15", linewidth=1)
    axes.annotate("weights\nare small", (end, 0.985), xycoords=("data", "axes fraction"), xytext=(-4, 0),
                  textcoords="offset points", ha="right", va="top", fontsize="small")  # fmt: skip
    decades(axes, late.time.values)
    names = {
        -180: "−180",
        -90: "−90",
        0: r"0 ($\mu_1$)",
        45: r"45 ($\bar\mu_+$)",
        90: r"90 ($\mu_2$)",
        180: "180",
    }
    axes.set_yticks(list(names), list(names.values()))
    axes.set_ylim(-195, 230)


def animate(data: xr.Dataset, config: Circle) -> Iterator[Figure]:
    """The circles side by side over the loss, with a mark that moves in time."""
    count = len(config.p)
    figure = Figure(figsize=(2.7 * count, 4.2))
    figure.set_layout_engine("none")  # it would have to be found anew in every frame
    edges = {"left": 0.09, "right": 0.98, "top": 0.93, "bottom": 0.13}
    grid = figure.add_gridspec(2, count, height_ratios=[2.6, 1], hspace=0.15, wspace=0.03, **edges)
    globes, losses = [], {}
    for column, p in enumerate(config.p):
        here = data.sel(p=p).isel(seed=0)
        axes = figure.add_subplot(grid[0, column])
        axes.set_title(f"$p$ = {p:g}", loc="center")
        picture = circle(axes, here, moving=True)
        globes.append((picture, on_circle(here.phi.values), lengths(here.mass.values)))
        losses[f"$p$ = {p:g}"] = here.loss.values
    return play(figure, figure.add_subplot(grid[1, :]), globes, data.time.values, losses)
