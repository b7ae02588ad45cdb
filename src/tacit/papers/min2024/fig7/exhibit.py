"""Figure 7: where x^(p)(w) points, for two positive centres in the plane.

K = K1 = 2, mu_1 and mu_2 orthogonal, w between them at angle phi from mu_1. Equations (52)-(54):
p = 1: mu_1 + mu_2, the average; p = 2: 2 w/||w||, w itself; p = 3: 3 (cos^2 phi, sin^2 phi), beyond w
towards the closer centre.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.base.estimate import Certain
from tacit.lab import Bench, Claim, Expected, Judge, Outcome
from tacit.measure import alignment_field
from tacit.papers.min2024.fig7.settings import Field

WHERE = "Appendix D.1, Figure 7"
ROUNDING = 1e-12


def run(config: Field, bench: Bench) -> Outcome:
    """The field's angle for every angle of w strictly between the centres."""
    phi = torch.linspace(0, math.pi / 2, config.angles + 2, dtype=torch.float64)[1:-1]
    w = torch.stack([phi.cos(), phi.sin()], 1)
    centres, labels = torch.eye(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    fields = torch.stack([alignment_field(w, centres, labels, p) for p in config.p])
    angle = torch.atan2(fields[..., 1], fields[..., 0])
    data = xr.Dataset(
        {"angle": (("p", "phi"), angle.numpy()), "field": (("p", "phi", "axis"), fields.numpy())},
        coords={"p": list(config.p), "phi": phi.numpy()},
    )
    judge = bench.claims(
        WHERE, source="formula", bar=f"ours: {ROUNDING:g}, rounding", regime="inside: K = K1 = 2"
    )
    return Outcome(data, tuple(claims(judge, phi.numpy(), data)))


def claims(judge: Judge, phi: np.ndarray, data: xr.Dataset) -> Iterator[Claim]:
    """What the caption says of each p; nothing for a p it does not speak of."""
    for p in map(float, data.p.values):
        angle = data.angle.sel(p=p).values
        if p in (1, 2):
            goal, name = (math.pi / 4, "the class average") if p == 1 else (phi, "w")
            text = f"p = {p:g}: x^({p:g})(w) is parallel to {name} (largest angle, radians)"
            gap = Certain(float(np.abs(angle - goal).max()), "a closed form", len(phi))
            where = f"{WHERE}, (5{p + 1:g})"
            yield judge(f"p{p:g}", text, Expected(max=ROUNDING), gap, where=where, any_size=True)
        elif p > 2:
            # past w on the side of the closer centre, at every angle but the bisector itself
            off = np.abs(phi - math.pi / 4) > 1e-9
            past = np.where(phi < math.pi / 4, phi - angle, angle - phi)[off]
            text = (
                f"p = {p:g}: x^(p)(w) lies beyond w towards the closer centre (share of directions)"
            )
            share = Certain(float((past > 0).mean()), "a closed form at each direction", len(past))
            yield judge(f"p{p:g}", text, Expected(min=1.0), share, where=WHERE + ", (54)", any_size=True,
                        bar="paper: towards the closer centre, wherever w is")  # fmt: skip


def draw(data: xr.Dataset, config: Field) -> Figure:
    """The plane for each p, as in the paper, and the map phi -> angle of x^(p)."""
    count = len(config.p)
    figure = Figure(figsize=(2.6 * count + 3.4, 3.3))
    axes = figure.subplots(1, count + 1, width_ratios=[1] * count + [1.3])
    for index, p in enumerate(config.p):
        plane(axes[index], data.sel(p=p), f"C{index}")
        axes[index].set_title(f"$p$ = {p:g}")
    last = axes[-1]
    phi = np.degrees(data.phi.values)
    for index, p in enumerate(config.p):
        last.plot(
            phi, np.degrees(data.angle.sel(p=p).values), color=f"C{index}", label=f"$p$ = {p:g}"
        )
        theory = np.degrees(np.arctan2(np.sin(data.phi) ** (p - 1), np.cos(data.phi) ** (p - 1)))
        thin = slice(None, None, max(len(phi) // 12, 1))
        last.plot(phi[thin], theory.values[thin], "o", color="0.15", markersize=2.5, zorder=3)
    last.plot([], [], "o", color="0.15", markersize=2.5, label="(52)–(54)")
    last.set(xlabel=r"angle of $w$ from $\mu_1$ (degrees)", ylabel=r"angle of $x^{(p)}(w)$")
    last.set_xticks([0, 45, 90])
    last.set_yticks([0, 45, 90], ["0 ($\\mu_1$)", "45 ($\\bar\\mu_+$)", "90 ($\\mu_2$)"])
    last.set_title("where the neuron is drawn")
    last.legend()
    return figure


def plane(axes: Axes, data: xr.Dataset, colour: str) -> None:
    """Centres, average, and at seven directions w the unit arrow of x^(p)(w)."""
    arc = np.linspace(0, math.pi / 2, 100)
    axes.plot(np.cos(arc), np.sin(arc), color="0.85", linewidth=1)
    for x, y, name in (
        (1, 0, r"$\mu_1$"),
        (0, 1, r"$\mu_2$"),
        (math.sqrt(0.5), math.sqrt(0.5), ""),
    ):
        axes.annotate(
            "", (x, y), (0, 0), arrowprops={"arrowstyle": "-", "linestyle": "--", "color": "0.5"}
        )
        axes.annotate(name, (1.08 * x, 1.08 * y), ha="center", va="center")
    axes.annotate(r"$\bar\mu_+$", (0.62, 0.62), ha="right", va="bottom")
    for step in np.linspace(0.09, 0.91, 7):
        here = data.isel(phi=int(step * (data.sizes["phi"] - 1)))
        w = (math.cos(float(here.phi)), math.sin(float(here.phi)))
        pull = here.field.values / np.linalg.norm(here.field.values)
        tip = (w[0] + 0.34 * pull[0], w[1] + 0.34 * pull[1])
        axes.annotate(
            "",
            tip,
            w,
            arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.6, "shrinkA": 0},
        )
        axes.plot(*w, "o", color="0.15", markersize=3.5)
    axes.set(xlim=(-0.05, 1.45), ylim=(-0.05, 1.45), aspect="equal")
    axes.set_axis_off()
