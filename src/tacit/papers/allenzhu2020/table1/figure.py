"""Table 1 as a table, measured over printed, and robust accuracy under ever stronger attacks."""

import math
from dataclasses import replace

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.base.estimate import Estimate
from tacit.papers._shared.panels import rows
from tacit.papers.allenzhu2020.deep.claims import share_of
from tacit.papers.allenzhu2020.deep.figure import NAMES, setting_of
from tacit.papers.allenzhu2020.table1.claims import CLEAN, PRINTED, rows_by_net
from tacit.papers.allenzhu2020.table1.settings import EVERY, Table

STARTS = {
    "none": "clean\ntraining",
    "": "adversarial,\nfrom random",
    "clean": "adversarial,\nfrom clean net",
    "sixteen": "from random,\nResNet-16",
}
ATTACKS = {"own": "attacker of the training", "strong": "longer, restarts", "strict": "strict"}
DARK = 0.4  # text on cells of more robust accuracy is white

Found = dict[tuple[str, str], xr.Dataset]


def draw(data: xr.Dataset, config: Table) -> Figure:
    """The table, and each row under the attacks that it was tried with."""
    found = rows_by_net(data)
    starts = [start for start in STARTS if any(key[1] == start for key in found)]
    figure = Figure(figsize=(13.0, 2.4 + 0.8 * len(starts)))
    left, right = figure.subplots(1, 2, width_ratios=[1.35, 1])
    table(left, found, starts, config)
    attacks(right, found, config)
    figure.suptitle(setting_of(config), fontsize="medium")
    return figure


def table(axes: Axes, found: Found, starts: list[str], config: Table) -> None:
    """(a) robust (clean) accuracy in percent; below it the paper's, where nets and images are its own."""
    shown = np.full((len(starts), len(EVERY)), np.nan)
    for i, start in enumerate(starts):
        for j, name in enumerate(EVERY):
            row = found.get((name, start))
            if row is None:
                axes.text(j, i, "not run", ha="center", va="center", color="0.6", fontsize="small")
                continue
            robust, clean = (float(row[key].mean()) for key in ("own", "noisy"))
            if start == "none":  # the paper has one number, without noise
                clean = float(row.plain.mean())
            shown[i, j] = robust
            colour = "white" if robust > DARK else "0.15"
            printed = {**PRINTED, "none": CLEAN}.get(start, {}).get(name)
            lift = 0.13 if printed and config.whole else 0.0
            text = f"{100 * robust:.1f}% ({100 * clean:.1f}%)"
            axes.text(j, i - lift, text, ha="center", va="center", color=colour, weight="bold")
            if printed and lift:
                text = f"{100 * printed[0]:.1f}% ({100 * printed[1]:.1f}%)"
                low = i + 0.24
                axes.text(j, low, text, ha="center", va="center", color=colour, fontsize="small")
    axes.imshow(shown, cmap="Blues", vmin=-0.05, vmax=0.7, aspect="auto")
    axes.set_yticks(range(len(starts)), [STARTS[start] for start in starts])
    axes.set_xticks(range(len(EVERY)), [NAMES[name] for name in EVERY])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_title("(a) robust (clean) accuracy" + "; below, the paper's" * config.whole)


def attacks(axes: Axes, found: Found, config: Table) -> None:
    """(b) robust accuracy of each trained row under stronger and stronger attacks; hollow: the paper's."""
    keys = [(name, start) for start in STARTS for name in EVERY if (name, start) in found]
    keys = [key for key in keys if key[1] != "none"]
    at = np.arange(len(keys))[::-1]
    for index, (attack, label) in enumerate(ATTACKS.items()):
        tried = [k for k, key in enumerate(keys) if np.isfinite(found[key][attack]).all()]
        if not tried:
            continue
        ends = rows(left_by(found[keys[k]], attack) for k in tried)
        heights = at[tried] + 0.22 * (1 - index)
        few = found[keys[tried[0]]][attack].size
        value, low, high = ends
        axes.errorbar(
            value, heights, xerr=[value - low, high - value], fmt="os^"[index], color=f"C{index}",
            markersize=4.5, label=f"{label} ({few:,} images)",
        )  # fmt: skip
    if config.whole:
        told = {
            at[k]: PRINTED[key[1]][key[0]][0] for k, key in enumerate(keys) if key[1] in PRINTED
        }
        axes.plot(
            list(told.values()), [height + 0.22 for height in told], "D", color="0.35",
            markerfacecolor="none", markersize=8, label="paper",
        )  # fmt: skip
    begun = {"": "random", "clean": "clean net", "sixteen": "ResNet-16"}
    axes.set_yticks(at, [f"{NAMES[name]}, {begun[start]}" for name, start in keys])
    axes.set_ylim(-0.6, len(keys) - 0.4)
    axes.set_xlim(0, max(0.7, axes.get_xlim()[1]))
    axes.set_xlabel("robust accuracy")
    axes.set_title("(b) under stronger attacks")
    axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)


def left_by(row: xr.Dataset, attack: str) -> Estimate:
    """Robust accuracy under an attack on the first images alone: `own` of all, less what it takes of theirs.

    So attacks that were tried on fewer images can be compared in one picture.
    """
    own = share_of(row.own)
    few = row[attack].values
    taken = share_of(row.own.values[: len(few)] - few)
    if attack == "own":
        return own
    value = own.value - taken.value
    below = math.hypot(own.value - own.low, taken.high - taken.value)
    above = math.hypot(own.high - own.value, taken.value - taken.low)
    return replace(own, value=value, low=value - below, high=value + above)
