"""The six panels of `frei2023.thm4.2`."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.papers._shared.panels import MARKERS, THEORY
from tacit.papers.frei2023.thm4_2.claims import Z95
from tacit.papers.frei2023.thm4_2.settings import Flipped
from tacit.papers.frei2023.thm4_2.sweeps import places


def draw(data: xr.Dataset, config: Flipped) -> Figure:
    """Growth in k and d, noise, imbalance, starts, transfer."""
    figure = Figure(figsize=(15, 8.6), layout="constrained")
    (k, d, noise), (share, starts, moved) = figure.subplots(2, 3)
    cluster_panel(k, data, config)
    dimension_panel(d, data, config)
    noise_panel(noise, data, config)
    imbalance_panel(share, data, config)
    start_panel(starts, data, config)
    transfer_panel(moved, data, config)
    return figure


def dots(
    axes: Axes,
    x: np.ndarray,
    values: np.ndarray,
    index: int,
    label: str | None,
    *,
    hollow: bool = False,
) -> None:
    """Mean over the seeds that fit, with their range; nothing where none does."""
    some = ~np.isnan(values).all(1)
    x, values = x[some], values[some]
    mean = np.nanmean(values, 1)
    axes.errorbar(
        x,
        mean,
        [mean - np.nanmin(values, 1), np.nanmax(values, 1) - mean],
        fmt=MARKERS[index % len(MARKERS)],
        color=f"C{index}",
        markerfacecolor="white" if hollow else f"C{index}",
        label=label,
        zorder=3,
    )


def taken(data: xr.Dataset, config: Flipped, name: str, level: float) -> np.ndarray:
    """Lengths of a sweep at one level, settings by seeds, in units of sqrt(d/k)."""
    return np.asarray(data.length.isel(setting=places(config, name)).sel(level=level).values)


def cluster_panel(axes: Axes, data: xr.Dataset, config: Flipped) -> None:
    """Median and 95% along z by k; the proof's z, and the way to another mean."""
    K = np.array(config.K)
    fine = np.geomspace(K[0], K[-1], 50)
    root = np.sqrt(config.D / K)[:, None]
    for s, sigma in enumerate(config.sigma):
        mine = slice(s * len(K), (s + 1) * len(K))
        shift = 1.04 ** (2 * s - 1)
        dots(
            axes,
            K * shift,
            taken(data, config, "K", 0.5)[mine] * root,
            s,
            f"median, $\\sigma={sigma:g}$",
        )
        tail = taken(data, config, "K", 0.95)[mine] * root
        dots(axes, K * shift, tail, s, f"95%, $\\sigma={sigma:g}$", hollow=True)
    axes.plot(fine, np.sqrt(config.D / fine), **THEORY, label=r"$\sqrt{d/k}$")
    noisy = np.sqrt(config.D / fine) + Z95 * max(config.sigma)
    axes.plot(fine, noisy, **{**THEORY, "linestyle": ":"}, label=r"$\sqrt{d/k}+1.645\,\sigma$")
    here = data.proof.isel(setting=places(config, "K")[: len(K)]).mean("seed")
    proof = here.values * root[:, 0]
    if np.isfinite(proof).any():  # the proof is silent outside the assumption
        axes.plot(K, proof, "-", color="C3", label=r"proof's $z$ (Lemma D.7)")
    axes.axhline(math.sqrt(2 * config.D), color="0.7", linewidth=1)
    axes.annotate(
        r"$\sqrt{2d}$: another mean", (K[0], math.sqrt(2 * config.D)), xytext=(0, -4),
        textcoords="offset points", va="top", color="0.4",
    )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(K, [str(k) for k in K])
    axes.set_ylim(top=6 * float(np.nanmax([*proof, math.sqrt(2 * config.D)])))
    axes.set(xlabel="clusters $k$", ylabel=r"length $\|\eta u\|$ that flips")
    axes.set_title(f"along $z=\\eta u$, $u=\\Sigma_q\\, y_q\\mu_q$, $d={config.D}$")
    axes.legend(loc="upper right", ncols=2, fontsize=8)


def dimension_panel(axes: Axes, data: xr.Dataset, config: Flipped) -> None:
    """k fixed, and k = sqrt(d) random means."""
    D = np.array(config.dims)
    for s, sigma in enumerate(config.sigma):
        mine = taken(data, config, "D", 0.5)[s * len(D) : (s + 1) * len(D)]
        label = f"$k={config.few}$, $\\sigma={sigma:g}$"
        dots(axes, D * 1.04 ** (2 * s - 1), mine * np.sqrt(D / config.few)[:, None], s, label)
    random = np.array(config.random)
    dots(axes, random, data.example.values, 2, r"$k=\sqrt{d}$ random means, $\sigma=1$")
    for ends, scale, power, text in (
        (D, config.few**-0.5, 0.5, r"$\sqrt{d/k}$"),
        (random, 1.0, 0.25, r"$d^{1/4}$"),
    ):
        fine = np.geomspace(ends[0], ends[-1], 50)
        line = scale * fine**power
        axes.plot(fine, line, **THEORY)
        axes.annotate(
            text, (fine[25], line[25]), xytext=(6, -6), textcoords="offset points", va="top"
        )
    ticks = sorted({*config.dims, random[0]})
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(ticks, [str(d) for d in ticks])
    axes.set_yticks([3, 5, 10, 20], ["3", "5", "10", "20"])
    axes.minorticks_off()
    axes.set(xlabel="dimension $d$", ylabel=r"median length $\|\eta u\|$")
    axes.set_title("growth with the dimension")
    axes.legend(loc="upper left", fontsize=8)


def noise_panel(axes: Axes, data: xr.Dataset, config: Flipped) -> None:
    """sigma -> 0: median and 95% over sqrt(d/k)."""
    sigma = np.array(config.noise)
    fine = np.linspace(0, max(sigma.max(), 0.1), 50)
    unit = math.sqrt(config.at / config.few)
    axes.axhline(1, **THEORY)
    axes.plot(
        fine,
        1 + Z95 * fine / unit,
        **{**THEORY, "linestyle": ":"},
        label=r"$N(\sqrt{d/k},\sigma^2)$",
    )
    dots(axes, sigma, taken(data, config, "noise", 0.5), 0, "median")
    dots(axes, sigma, taken(data, config, "noise", 0.95), 1, "95%", hollow=True)
    axes.set_xscale("symlog", linthresh=1e-3)
    axes.set(xlim=(-2e-4, None), xlabel=r"noise $\sigma$", ylabel=r"length over $\sqrt{d/k}$")
    axes.set_title(rf"$\sigma\to 0$, $d={config.at}$, $k={config.few}$")
    axes.legend(loc="upper left")


def imbalance_panel(axes: Axes, data: xr.Dataset, config: Flipped) -> None:
    """The rarer class's share c: what the theorem allows, and what is."""
    c = np.array([min(K1, config.many - K1) / config.many for K1 in config.positive])
    fine = np.geomspace(min(c.min(), 0.25), 0.5, 50)
    axes.plot(
        fine,
        1 / fine,
        **{**THEORY, "linestyle": ":"},
        label=r"$\sqrt{d/(c^2k)}$ (the theorem's order)",
    )
    axes.axhline(1, **THEORY, label=r"$\sqrt{d/k}$")
    dots(axes, c, taken(data, config, "positive", 0.5), 0, "median")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(c, [f"{round(x * config.many)}/{config.many}" for x in c])
    axes.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    axes.minorticks_off()
    axes.set(xlabel="share $c$ of the rarer class's clusters", ylabel=r"length over $\sqrt{d/k}$")
    axes.set_title(rf"imbalance, $d={config.at}$, $\sigma={min(config.sigma):g}$")
    axes.legend(loc="upper right")


def start_panel(axes: Axes, data: xr.Dataset, config: Flipped) -> None:
    """From tiny to NTK-like starts, median and 95%."""
    names = [f"{x:g}" if x else "NTK-like" for x in config.inits]
    at = np.arange(len(names))
    for s, sigma in enumerate(dict.fromkeys((min(config.sigma), max(config.sigma)))):
        mine = slice(s * len(at), (s + 1) * len(at))
        shift = at + 0.1 * (s - 0.5)
        dots(
            axes, shift, taken(data, config, "inits", 0.5)[mine], s, f"median, $\\sigma={sigma:g}$"
        )
        tail = taken(data, config, "inits", 0.95)[mine]
        dots(axes, shift, tail, s, f"95%, $\\sigma={sigma:g}$", hollow=True)
    axes.axhline(1, **THEORY)
    axes.set_xticks(at, names)
    axes.set(xlim=(-0.5, len(at) - 0.5), ylim=(0.9, None))
    axes.set(xlabel="standard deviation of the first weights", ylabel=r"length over $\sqrt{d/k}$")
    axes.set_title(rf"starts, $d={config.at}$, $k={config.few}$, log-loss {config.log_loss:g}")
    axes.legend(loc="upper left")


def transfer_panel(axes: Axes, data: xr.Dataset, config: Flipped) -> None:
    """Median length by direction (rows: z, and what was learned on each net) and net (columns)."""
    names = [str(name) for name in data.target.values]
    means = data[["transfer", "transfer_z"]].sel(quantile=0.5).mean("draw")
    table = np.vstack([means.transfer_z.values, means.transfer.sel(way="learned").values])
    shown = np.where(np.isfinite(table), table, np.nan)
    axes.grid(visible=False)
    axes.imshow(shown, cmap="viridis", vmin=0.85, vmax=1.25, aspect="auto")
    for (i, j), value in np.ndenumerate(table):
        color = "black" if value > 1.1 else "white"
        axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color=color)
    axes.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=8)
    axes.set_yticks(range(len(names) + 1), ["$z$ (means)", *names], fontsize=8)
    axes.set(xlabel="net attacked", ylabel="direction: $z$, or learned on")
    axes.set_title(rf"transfer: median length over $\sqrt{{d/k}}$, $d={config.transfer}$")
