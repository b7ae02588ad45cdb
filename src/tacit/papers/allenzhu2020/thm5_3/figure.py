"""The panels of `allenzhu2020.thm5.3`."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers.allenzhu2020._shared.settings import VARIANTS
from tacit.papers.allenzhu2020.thm5_3.settings import Adversarial

COURSES = {
    "clean": "clean\nnet",
    "control": "as many\nclean steps",
    "pure": "adversarial\ntraining",
}
TRAININGS = {
    "from_random": "FGM, from random weights",
    "pgd": "PGD",
    "universal": "universal (mixtures in the data)",
    "random": "random",
    "weak": "FGM of half the radius",
}


def draw(data: xr.Dataset, config: Adversarial) -> Figure:
    """Before, control and after; the mixture; other attackers and settings."""
    figure = Figure(figsize=(12.6, 4.2))
    first, second, third = figure.subplots(1, 3, width_ratios=[1.1, 0.8, 1.3])
    accuracies(first, data, config)
    mixtures(second, data, config)
    beside(third, data, config)
    return figure


def accuracies(axes: Axes, data: xr.Dataset, config: Adversarial) -> None:
    """Clean accuracy and the accuracy under each attack, one dot a training."""
    kinds = {
        "clean": "as drawn",
        "universal": r"along $Mw^\star$",
        "fgm": "FGM",
        "worst": "worst, with PGD",
    }
    for i, (kind, label) in enumerate(kinds.items()):
        for place, name in enumerate(COURSES):
            held = data[f"control_{kind}"] if name == "control" else data[kind].sel(course=name)
            values = held.mean("point").values
            at = np.full(len(values), place + 0.16 * (i - 1.5))
            axes.plot(at, values, "os^D"[i], color=f"C{i}", alpha=0.65, markersize=5)
        axes.plot([], [], "os^D"[i], color=f"C{i}", label=label)
    for place, name in ((0, "clean"), (2, "pure")):
        share = float(data.certified.sel(stage=name, part=2).mean())
        axes.plot(place, share, "_", color="0.1", markersize=26, markeredgewidth=2)
    axes.plot([], [], "_", color="0.1", label=r"certified at $\tau/2$")
    axes.set_xticks(range(len(COURSES)), COURSES.values())
    axes.set(ylim=(-0.03, 1.04), xlim=(-0.5, 2.5), ylabel=rf"accuracy, $\tau$ = {config.tau:g}")
    axes.set_title("adversarial training restores robustness")
    axes.legend(loc="center", bbox_to_anchor=(0.42, 0.52), fontsize="small")


def mixtures(axes: Axes, data: xr.Dataset, config: Adversarial) -> None:
    """The mixture, in k/d, and how many features a perturbation has."""
    unit = config.k / config.d
    for place, name in enumerate(COURSES):
        held = data.control_relative if name == "control" else data.relative.sel(course=name)
        values = held.values / unit
        axes.plot(
            np.full(len(values), place - 0.1), values, "o", color="C3", alpha=0.65, markersize=5
        )
    axes.axhline(0, color="0.6", linewidth=0.8)
    axes.set_xticks(range(len(COURSES)), COURSES.values(), fontsize="small")
    axes.set(xlim=(-0.5, 2.5), title="the mixture is removed")
    axes.set_ylabel(r"mean $\beta/\alpha$ in $k/d$", color="C3")
    other = axes.twinx()
    for place, name in enumerate(COURSES):
        held = (
            data.control_participation if name == "control" else data.participation.sel(course=name)
        )
        values = held.values
        other.plot(
            np.full(len(values), place + 0.1), values, "D", color="C0", alpha=0.65, markersize=4
        )
    other.set_ylabel("features in a perturbation", color="C0")
    other.set(ylim=(0, None))
    other.grid(visible=False)


def beside(axes: Axes, data: xr.Dataset, config: Adversarial) -> None:
    """Worst-case accuracy for each attacker of the training and in each setting."""
    rows = [("FGM, this setting", data.worst.sel(course="pure"), data.own.sel(course="pure"))]
    for name in ("from_random", *config.attackers):
        here = data.sel(training=name)
        rows.append((TRAININGS[name], here.other_worst, here.other_own))
    rows.append(
        (
            VARIANTS["printed"][0],
            data.printed_worst.sel(net="pure"),
            data.printed_worst.sel(net="clean"),
        )
    )
    for name in config.variants:
        here = data.sel(variant=name)
        rows.append(
            (
                VARIANTS[name][0],
                here.variant_worst.sel(stage="pure"),
                here.variant_worst.sel(stage="clean"),
            )
        )
    at = np.arange(len(rows))[::-1]
    settings = len(rows) - len(config.variants) - 1
    for place, (index, (_label, worst, second)) in zip(at, enumerate(rows), strict=True):
        values = worst.mean("point").values
        axes.plot(values, np.full(len(values), place), "D", color="C3", alpha=0.65, markersize=5)
        values = second.mean("point").values
        style: dict[str, Any] = (
            {"color": "C2", "marker": "o"} if index < settings else {"color": "C0", "marker": "s"}
        )
        axes.plot(
            values, np.full(len(values), place), linestyle="", alpha=0.5, markersize=4, **style
        )
    axes.plot([], [], "D", color="C3", label="worst attack")
    axes.plot([], [], "o", color="C2", label="the training's own attacker")
    axes.plot([], [], "s", color="C0", label="worst attack before it")
    axes.axhline(len(config.variants) + 0.5, color="0.8", linewidth=1)
    axes.set_yticks(at, [row[0] for row in rows], fontsize="small")
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.6, len(rows) - 0.4), xlabel="accuracy")
    axes.set_title("other attackers in training, other data")
    axes.legend(loc="lower center", fontsize="small")
