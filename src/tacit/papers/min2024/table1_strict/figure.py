"""The panels of `table1_strict`."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from tacit.papers.min2024.table1_strict.attacks import ATTACKS
from tacit.papers.min2024.table1_strict.claims import gain_of

SAID = {"linf": r"$\ell_\infty$", "l2": r"$\ell_2$", "l1": r"$\ell_1$"}
LABELS = {
    "paper": "paper: APGD-CE",
    "steps": "more steps",
    "margin": "margin loss",
    "targeted": "targeted",
    "restarts": "restarts",
    "transfer": "transfer",
    "square": "Square (few)",
    "minimal": "minimal (few)",
}


def interval_panel(axes: Axes, data: xr.Dataset, kind: str, letter: str) -> None:
    """For each radius and p: proved, left by the worst case, left by the paper's attack."""
    here = data.isel(row=(data.norm == kind).values)
    ps = data.p.values
    proved = here.proved.mean(("seed", "sure"))
    worst, paper = here.worst.mean("seed"), here.robust.sel(attack="paper").mean("seed")
    few = here.kept.isel(point=slice(0, data.sizes["sure"])).mean(("seed", "point"))
    ticks = []
    for i in range(here.sizes["row"]):
        for j in range(len(ps)):
            at, colour = i * (len(ps) + 1) + j, f"C{j}"
            top, low = float(worst[i, j]), float(proved[i, j])
            axes.bar(at, top, 0.8, color=colour, alpha=0.3, linewidth=0)
            # proved on few points, drawn to the height they have among all
            axes.bar(at, low, 0.8, color=colour, linewidth=0)
            axes.plot([at - 0.4, at + 0.4], [float(paper[i, j])] * 2, color="0.1", linewidth=1.4)
            axes.plot(at, float(few[i, j]), ".", color="0.35", markersize=4)
            axes.annotate(
                f"{top:.2f}"[1:] if top < 1 else "1",
                (at, max(top, float(paper[i, j]))),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize="x-small",
            )
            ticks.append((at, f"{ps[j]:g}"))
        middle = i * (len(ps) + 1) + (len(ps) - 1) / 2
        axes.annotate(
            f"radius {float(here.radius[i]):g}",
            (middle, -0.15),
            xycoords=("data", "axes fraction"),
            ha="center",
            fontsize="small",
        )
    axes.set_xticks(*map(list, zip(*ticks, strict=True)))
    axes.grid(visible=False, axis="x")
    axes.set_ylim(0, 1.08)
    axes.set_title(f"({letter}) {SAID[kind]}: robust accuracy by $p$")
    if letter == "a":
        axes.set_ylabel("share of test points")
        handles = [
            axes.bar(0, 0, color="0.3", label="proved"),
            axes.bar(0, 0, color="0.3", alpha=0.3, label="left by the worst of all attacks"),
            axes.plot([], [], color="0.1", label="left by the paper's attack")[0],
            axes.plot([], [], ".", color="0.35", label="worst, the points of proofs alone")[0],
        ]
        axes.legend(handles=handles, loc="upper right", fontsize="x-small")


def gain_panel(axes: Axes, data: xr.Dataset, letter: str) -> None:
    """The gain from the smallest to the largest p that each attack shows, mean over norms and radii."""
    seen = {LABELS[name]: gain_of(data.robust.sel(attack=name)) for name in ATTACKS}
    seen["worst of all"] = gain_of(data.worst)
    rows = {name: float(gain.dropna("row").mean()) for name, gain in seen.items()}
    names = list(rows)[::-1]
    colours = [
        "C1" if n == "worst of all" else "0.2" if n == LABELS["paper"] else "0.7" for n in names
    ]
    axes.barh(range(len(names)), [rows[n] for n in names], color=colours)
    for at, name in enumerate(names):
        axes.annotate(
            f"{rows[name]:.3f}", (max(rows[name], 0), at), xytext=(3, 0), textcoords="offset points",
            va="center", fontsize="x-small",
        )  # fmt: skip
    axes.set_yticks(range(len(names)), names, fontsize="small")
    axes.set_xlim(min(0, 1.1 * min(rows.values())), 1.25 * max(max(rows.values()), 0.01))
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("mean gain in accuracy")
    axes.set_title(f"({letter}) gain $p$ = {float(data.p[0]):g} to {float(data.p[-1]):g}")


def transfer_panel(axes: Axes, data: xr.Dataset, letter: str) -> None:
    """Accuracy of the net of p (columns) on what was made for another (rows), linf, largest radius."""
    rows = (data.norm == "linf").values.nonzero()[0]
    left = data.transfer_left.isel(row=rows[-1]).mean("seed").transpose("source", "p").values
    axes.imshow(left, cmap="Blues", vmin=0, vmax=1)
    ps = [f"{p:g}" for p in data.p.values]
    for i, j in np.ndindex(left.shape):
        axes.text(
            j,
            i,
            f"{left[i, j]:.2f}",
            ha="center",
            va="center",
            color="w" if left[i, j] > 0.6 else "k",
        )
    axes.set_xticks(range(len(ps)), ps)
    axes.set_yticks(range(len(ps)), ps)
    axes.grid(visible=False)
    axes.set_xlabel("$p$ of the net attacked")
    axes.set_ylabel("$p$ of the net it was made for")
    radius = float(data.radius[rows[-1]])
    axes.set_title(rf"({letter}) transfer, {SAID['linf']} {radius:g}: accuracy")


def radius_panel(axes: Axes, data: xr.Dataset, letter: str) -> None:
    """Median radius over p, in units of the smallest p's shortest perturbation: found and proved."""
    for j, kind in enumerate(("linf", "l2")):
        found = data.minimal.sel(kind=kind).median(("seed", "few"))
        sure = data.proved_radius.sel(kind=kind).median(("seed", "sure"), skipna=False)
        unit = float(found[0]) or 1.0
        axes.plot(
            data.p, found / unit, "o-", color=f"C{j}", label=f"{SAID[kind]} found (1 is {unit:.2g})"
        )
        if bool(sure.isnull().any()):
            continue
        axes.plot(data.p, sure / unit, "v--", color=f"C{j}", label=f"{SAID[kind]} proved")
        axes.fill_between(data.p, sure / unit, found / unit, color=f"C{j}", alpha=0.12, linewidth=0)
    axes.set_xticks(data.p.values)
    # room for the legend above the curves
    axes.set_ylim(0, 1.5 * axes.get_ylim()[1])
    axes.set_xlabel("$p$")
    axes.set_title(f"({letter}) median radius, relative")
    axes.legend(fontsize="x-small", loc="upper left")


def gradient_panel(axes: Axes, data: xr.Dataset, letter: str) -> None:
    """Length of the gradients at the clean points: quartiles over the points."""
    for j, (name, label) in enumerate((("slope", "cross-entropy"), ("steady", "margin"))):
        quarter, half, most = (data[name].quantile(q, ("seed", "point")) for q in (0.25, 0.5, 0.75))
        axes.fill_between(data.p, quarter, most, color=f"C{j}", alpha=0.2, linewidth=0)
        axes.plot(data.p, half, "o-", color=f"C{j}", label=label)
    axes.set_yscale("log")
    axes.set_xticks(data.p.values)
    axes.set_xlabel("$p$")
    axes.set_title(f"({letter}) length of the gradients")
    axes.legend(fontsize="x-small")
