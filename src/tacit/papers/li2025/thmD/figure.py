"""The two panels of `li2025.thmD`."""

import math

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.measure import proportion
from tacit.papers._shared.panels import mark
from tacit.papers.li2025.thmD.settings import Biases

ACCURATE = 0.99  # the clean accuracy that stands for the theorem's 1 - o(1)


def draw(data: xr.Dataset, config: Biases) -> Figure:
    """Class-averaged critical radius of f_avg over the biases, and robust accuracy by radius."""
    figure = Figure(figsize=(10.5, 4))
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1, 1.35]})
    bias_panel(left, data)
    curve_panel(right, data, config)
    return figure


def bias_panel(axes: Axes, data: xr.Dataset) -> None:
    """Colour: (radius of + and - averaged) / sqrt(d/k) where accurate; white where not."""
    both = data["median"].sel(end="median").mean("side").where(data.accuracy >= ACCURATE)
    b = data.b_plus.values
    image = axes.pcolormesh(b, b, both.transpose("b_minus", "b_plus"), vmin=0, vmax=1.05)
    for sign in (1, -1):
        axes.plot(b, b + sign, "--", color="0.35", linewidth=1.2)
    axes.annotate(
        r"$b_- = b_+ + d$", (-0.3, 0.75), rotation=45, ha="right", va="bottom", color="0.25"
    )
    axes.annotate(r"$b_- = b_+ - d$", (0.62, -0.42), rotation=45, ha="left", va="top", color="0.25")
    axes.set(xlim=(b[0], b[-1]), ylim=(b[0], b[-1]), aspect="equal")
    axes.grid(False)
    axes.set(xlabel="$b_+/d$", ylabel="$b_-/d$")
    axes.set_title(f"$f_{{avg}}$ (white: accuracy below {ACCURATE})")
    axes.figure.colorbar(image, ax=axes, label=r"mean critical radius of the classes$/\sqrt{d/k}$")


def curve_panel(axes: Axes, data: xr.Dataset, config: Biases) -> None:
    """Robust accuracy of the three, with the theory's radii."""
    root = math.sqrt(config.D)
    x = data.radius.values / root
    for index, net in enumerate(map(str, data.net.values)):
        counts = data.kept.sel(net=net).values
        found = [proportion(int(c), config.n) for c in counts]
        name = net.replace("f_avg", "$f_{avg}$").replace("f_dec", "$f_{dec}$")
        name = name.replace("sign(0) = -1", "$\\mathrm{sign}(0)=-1$")
        axes.plot(x, counts / config.n, color=f"C{index}", label=name, zorder=3 - index)
        axes.fill_between(
            x,
            [e.low for e in found],
            [e.high for e in found],
            color=f"C{index}",
            alpha=0.25,
            linewidth=0,
        )
    for at, text, height in (
        (1 / math.sqrt(config.K), r"$\sqrt{d/k}$", 0.55),
        (1 / 3, r"$\sqrt{d}/3$", 0.2),
        (1 / 2, r"$\sqrt{d}/2$", 0.9),
        (math.sqrt(0.5), r"$\sqrt{d/2}$", 0.9),
    ):
        mark(axes, at, text, height, left=at < 1 / 3)
    axes.set(ylim=(0, 1.03), xlim=(0, x[-1]), xlabel=r"$\ell_2$ radius$/\sqrt{d}$")
    axes.set_ylabel("robust accuracy")
    axes.set_title(f"$d={config.D}$, $k={config.K}$: exact, {config.n:,} samples")
    axes.legend(loc="lower left")
