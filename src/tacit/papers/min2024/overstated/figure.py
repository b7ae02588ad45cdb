"""The panels of `overstated`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from tacit.papers._shared.crossed import crossed
from tacit.papers._shared.panels import MARKERS, rows
from tacit.papers.min2024.overstated.attacks import ATTACKS, COMMON, TOOLS
from tacit.papers.min2024.overstated.claims import CHEAP, LABELS, SHARE, Place

SHOWN = (*(name for name in COMMON if name != "pgd20"), "short")  # pgd50 is pgd20 with more steps
GREYS = (("x", ":"), ("+", "--"), ("1", "-."))  # of other tools
FLOOR = 1e-4  # where no point is overstated, on a logarithmic axis


def style(name: str) -> dict[str, Any]:
    """One colour and marker an attack, in all panels."""
    if name in TOOLS:
        marker, line = GREYS[list(TOOLS).index(name)]
        return {"color": "0.45", "marker": marker, "label": LABELS[name], "linestyle": line}
    shown = name in SHOWN
    colour, marker = (
        (f"C{SHOWN.index(name)}", MARKERS[SHOWN.index(name)]) if shown else ("0.5", "o")
    )
    return {"color": colour, "marker": marker, "label": LABELS[name]}


def growth_panel(axes: Axes, place: Place, letter: str) -> None:
    """The share of points overstated, with intervals, over p."""
    ps = place.over.p.values
    tried = [attack for attack in (*SHOWN, *TOOLS) if place.values(attack).size]
    for k, attack in enumerate(tried):
        values = place.values(attack)
        mean, low, high = rows(
            crossed(one, place.N, ends=SHARE, fresh=place.fresh) for one in values
        )
        shift = 0.03 * (k - len(tried) / 2)
        axes.errorbar(ps + shift, mean, [mean - low, high - mean], capsize=2, linewidth=1.3,
                      markersize=4.5, **style(attack))  # fmt: skip
    axes.set_xticks(ps)
    axes.set_ylim(bottom=-0.01)
    axes.set_xlabel("$p$")
    where = "at 1.06 of the median radius" if place.fresh else "mean over norms, radii"
    axes.set_title(f"({letter}) {place.name}: points left that break, {where}")
    axes.set_ylabel("robust accuracy overstated by")


def curve_panel(axes: Axes, data: xr.Dataset, letter: str) -> None:
    """Clusters at p = 3 (or the largest): robust accuracy over the radius by each attack, and the truth."""
    p = 3.0 if 3.0 in data.p.values else float(data.p[-1])
    order = np.argsort(data.ball_radius.values[1:]) + 1
    here = data.sel(p=p).isel(ball=order)
    radii = here.ball_radius.values
    strict = (here.cluster_strict == 0).mean(("seed", "sample"))
    proved = here.cluster_proved.mean(("seed", "sample"))
    axes.fill_between(radii, proved, strict, color="0.8", linewidth=0)
    axes.plot(radii, strict, color="0.1", linewidth=2.4, label="strict attack; shaded to proved")
    for attack in SHOWN:
        found = here.cluster_broken.sel(attack=attack)
        left = (found == 0).where(found >= 0).mean(("seed", "sample"))
        axes.plot(radii, left, linewidth=1.3, markersize=4.5, **style(attack))
    axes.axvline(np.sqrt(0.5), linestyle="--", color="0.35", linewidth=1.2)
    axes.annotate(r"$\sqrt{2}/2$", (np.sqrt(0.5), 0.03), xytext=(3, 0), textcoords="offset points")
    axes.set_ylim(-0.02, 1.05)
    axes.set_xlabel(r"$\ell_2$ radius")
    axes.set_ylabel("robust accuracy reported")
    axes.set_title(f"({letter}) clusters, $p$ = {p:g}: what each attack reports")
    axes.legend(handles=axes.lines[:1], fontsize="x-small", loc="lower left")


def cost_panel(axes: Axes, places: Sequence[Place], letter: str) -> None:
    """The largest overstatement over p against the cost, filled on images, hollow on clusters."""
    for place in reversed(places):
        face = "white" if place.fresh else None
        for attack in ATTACKS:
            worst = max(float(place.values(attack).mean((1, 2)).max()), FLOOR)
            drawn = style(attack) | {"markerfacecolor": face or style(attack)["color"]}
            axes.plot(
                int(place.cost.sel(attack=attack)), worst, linestyle="none", markersize=6.5, **drawn
            )
            if face is None and attack not in SHOWN:  # the legend names the others
                axes.annotate(LABELS[attack], (int(place.cost.sel(attack=attack)), worst), rotation=30,
                              xytext=(4, 4), textcoords="offset points", fontsize="x-small")  # fmt: skip
    axes.axhline(CHEAP, linestyle="--", color="0.35", linewidth=1.2)
    axes.set(xscale="log", yscale="log", ylim=(FLOOR / 1.5, 1.6))
    low, high = axes.get_xlim()
    axes.set_xlim(low, 3 * high)
    axes.set_xlabel("looks at the net, for each point and radius")
    axes.set_ylabel("overstated by, at the worst $p$")
    axes.set_title(f"({letter}) cost; filled: images, hollow: clusters ({FLOOR:g}: none)")
