"""The panels and the film of `allenzhu2020.lottery`."""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import THEORY, mark
from tacit.papers.allenzhu2020.lottery.settings import Lottery

HOLD = 8  # times the last picture is shown


def draw(data: xr.Dataset, config: Lottery) -> Figure:
    """One neuron from start to end, and the sets over time."""
    figure = Figure(figsize=(11.4, 4.0))
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    path_panel(left, data, config)
    sets_panel(right, data, config)
    return figure


def path_panel(axes: Axes, data: xr.Dataset, config: Lottery) -> None:
    """The coordinates of one neuron over the steps of both trainings."""
    film = data.film.isel(shown=0).values
    step = data.film_step.values
    own = int(film[-1].argmax())
    others = np.delete(film, own, 1)
    axes.fill_between(step, others.min(1), others.max(1), color="C0", alpha=0.25, linewidth=0,
                      label="its other coordinates, all")  # fmt: skip
    axes.plot(step, others.mean(1), color="C3", label=r"their mean: the mixture $\bar\beta$")
    axes.plot(step, film[:, own], color="C2", label=r"its feature: $\alpha$")
    axes.plot(step, data.film_bias, label="bias $b$", **THEORY)
    mark(axes, sum(config.clean_steps), "adversarial\ntraining", 0.82)
    axes.set(xlabel="step", ylabel=r"$w^\star_j\,\langle w_i, M_j\rangle$", xlim=(0, step[-1]))
    axes.set_title("one neuron: lottery, mixture, purification")
    axes.legend(loc="upper left", fontsize="small")


def sets_panel(axes: Axes, data: xr.Dataset, config: Lottery) -> None:
    """Shares of the sets kept over time, and how well the start foretells."""
    t = data.moment.values
    for i, (name, label) in enumerate(
        (
            ("sure", r"$\mathcal{S}_{sure}^{(0)}$ still in $\mathcal{S}_{sure}^{(t)}$"),
            ("pot", r"$\mathcal{S}_{pot}^{(t)}$ within $\mathcal{S}_{pot}^{(0)}$"),
            ("sure_late", r"$\mathcal{S}_{sure}^{(0)}$ in $\mathcal{S}_{sure+}^{(t)}$"),
            ("pulled", r"neurons pulled along $+Mw^\star$"),
        )
    ):
        values = data[name]
        axes.fill_between(
            t, values.min("seed"), values.max("seed"), color=f"C{i}", alpha=0.2, linewidth=0
        )
        axes.plot(t, values.mean("seed"), "o-", color=f"C{i}", markersize=3.5, label=label)
    axes.axvline(config.phase, **THEORY)
    axes.annotate("$T_b$", (config.phase, 1.07), ha="center", fontsize="small")
    axes.set(xlabel="step of clean training", ylabel="share", ylim=(-0.03, 1.15), xlim=(0, t[-1]))
    told = float(data.foretold_sure.mean())
    axes.set_title(
        f"the start foretells {told:.0%} of the lucky, {float(data.foretold.mean()):.0%} of all"
    )
    axes.legend(loc="lower right", bbox_to_anchor=(1, 0.08), fontsize="small")


def animate(data: xr.Dataset, config: Lottery) -> Iterator[Figure]:
    """Neurons in the dictionary: stems that grow, the mixture below them, and its removal."""
    film = data.film.values
    frames, shown, features = film.shape
    figure = Figure(figsize=(9.6, 1.0 + 1.15 * shown))
    panels = np.atleast_1d(figure.subplots(shown, 1, sharex=True, sharey=True))
    top = float(film.max()) * 1.05
    place = np.arange(features)
    stems, means = [], []
    for i, axes in enumerate(panels):
        own = int(film[-1, i].argmax())
        colour = np.where(place == own, "C2", "C0")
        stems.append(axes.vlines(place, 0, film[0, i], color=colour, linewidth=1.3, animated=True))
        means.append(axes.axhline(0, color="C3", linewidth=1.2, animated=True))
        axes.set(xlim=(-1, features), ylim=(-0.25 * top, top), yticks=[])
        axes.set_ylabel(f"$w_{{{i + 1}}}$", rotation=0, labelpad=12)
        axes.grid(visible=False)
    panels[-1].set_xlabel("feature $j$ of the dictionary")
    title = panels[0].text(
        0.5, 1.08, "", transform=panels[0].transAxes, ha="center", animated=True, clip_on=False
    )
    last = sum(config.clean_steps)
    for frame in (*range(frames), *[frames - 1] * HOLD):
        step = int(data.film_step[frame])
        phase = (
            "lottery"
            if step <= config.clean_steps[0]
            else "mixture"
            if step <= last
            else "purification"
        )
        for i in range(shown):
            values = film[frame, i]
            stems[i].set_segments([[(j, 0.0), (j, v)] for j, v in zip(place, values, strict=True)])
            own = int(film[-1, i].argmax())
            mean = float(np.delete(values, own).mean())
            means[i].set_ydata([mean, mean])
        clean, robust = float(data.film_clean[frame]), float(data.film_robust[frame])
        title.set_text(
            f"{phase}, step {step:,}: accuracy {clean:.2f}, along $Mw^\\star$ {robust:.2f}"
        )
        yield figure
