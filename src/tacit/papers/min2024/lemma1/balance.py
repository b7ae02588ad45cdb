"""Appendix D.5: ||w_j||^2 - v_j^2 = 0 and the sign of v_j stay, along plain gradient descent.

`tacit.train.gradient_flow` has both in its coordinates and could contradict neither. Here w and v move by small
steps of their own (`tacit.train.descend`, float64). f has degree 1 in w_j and in v_j, so <w_j, dL/dw_j> =
v_j dL/dv_j, and a step eta adds

    eta^2 (||dL/dw_j||^2 - (dL/dv_j)^2)

to ||w_j||^2 - v_j^2 and nothing else: up to a fixed time the drift is of the order of the step, and gone in its
limit, gradient flow. Of a quantity that moves under the flow the drift would not vanish with the step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from tacit.base.estimate import farthest
from tacit.lab import Claim, Expected, Judge
from tacit.nets import TwoLayerNet
from tacit.papers._shared.fits import exponent, listed
from tacit.papers._shared.panels import MARKERS, THEORY
from tacit.papers._shared.universal import for_every
from tacit.papers.min2024.lemma1.settings import EarlyPhase
from tacit.train import descend
from tacit.train.losses import LossName

LOOKS = 30  # moments, from the start to the end
WHERE = "Appendix D.5, Balancedness"


def descended(
    config: EarlyPhase,
    starts: Sequence[TwoLayerNet],
    x: Float[Tensor, "K d"],
    y: Float[Tensor, " K"],
    losses: Sequence[LossName],
) -> xr.Dataset:
    """Of each start: the largest drift of a neuron's balance for each step, and the least v_j(t)/v_j(0)."""
    w, v = torch.stack([each.w for each in starts]), torch.stack([each.v for each in starts])
    net = replace(starts[0], w=w, v=v)
    shape = (len(losses), len(starts), len(config.step))
    drift, ratio, relative = (np.empty(shape) for _ in range(3))
    for i, loss in enumerate(losses):
        for k, step in enumerate(config.step):
            count = round(config.until / step)
            looks = np.unique(np.linspace(0, count, LOOKS).round().astype(int)).tolist()
            # the mean over K points in place of the paper's sum: K times the step
            nets = [each.net for each in descend(
                net, x, y, step=step * len(y), steps=count, loss=loss, record=looks).history]  # fmt: skip
            size, v = (
                torch.stack(t) for t in zip(*((n.w.norm(dim=-1), n.v) for n in nets), strict=True)
            )
            balance = size.square() - v.square()
            moved = (balance - balance[0]).abs()
            drift[i, :, k] = moved.amax((0, 2)).numpy()
            relative[i, :, k] = (moved / size.square()).amax((0, 2)).numpy()
            ratio[i, :, k] = (v / v[0]).amin((0, 2)).numpy()
    dims = ("loss", "seed", "step")
    return xr.Dataset(
        {"drift": (dims, drift), "sign_kept": (dims, ratio), "relative": (dims, relative)}
    )


def balance_claims(judge: Judge, data: xr.Dataset, config: EarlyPhase) -> Iterator[Claim]:
    """The order of the drift in the step, and the signs."""
    steps = listed(config.step)
    judge = judge.but(
        where=WHERE,
        regime=f"inside: simplified data, balanced start; both losses, steps of {steps}, time {config.until:g}",
    )
    cells = [(p, loss) for p in data.p.values for loss in data.loss.values]
    drift = data.drift.transpose("p", "loss", "step", "seed")
    slopes = [
        exponent(config.step, drift.sel(p=p, loss=loss).values, of=len(cells), over="starts")
        for p, loss in cells
    ]
    share = float(data.relative.isel(step=int(np.argmin(config.step))).max())
    text = (
        "v_j^2 - ||w_j||^2 stays 0: along gradient descent it is proportional to the step, and vanishes with it "
        f"(exponent of the step, farthest from 1 over p and losses; at {min(config.step):g} it is at most "
        f"{share:.2g} of ||w_j||^2 itself)"
    )
    bar = "derived: a step adds eta^2 (|dL/dw|^2 - (dL/dv)^2), the exponent 1; ours: to a tenth"
    yield judge("balanced", text, Expected(max=0.1), farthest(slopes), bar=bar)
    least = data.sign_kept.min([dim for dim in data.sign_kept.dims if dim != "seed"])
    text = "no v_j changes its sign along gradient descent (least v_j(t)/v_j(0))"
    yield for_every(
        judge.but(bar="paper: the sign stays"),
        "signs",
        text,
        Expected(min=0.0),
        least,
        "",
        "starts",
    )


def balance_panel(axes: Axes, data: xr.Dataset, config: EarlyPhase) -> None:
    """The largest drift over the step, exponential loss, for each p; dashed: proportional to the step."""
    step = np.array(config.step)
    for index, p in enumerate(config.p):
        here = data.drift.sel(p=p, loss="exp")
        axes.plot(step, here, MARKERS[index % 7] + "-", color=f"C{index}", label=f"$p$ = {p:g}")
    top = float(data.drift.sel(loss="exp").isel(step=int(step.argmax())).max())
    axes.plot(step, 2 * top * step / step.max(), **THEORY, label="slope 1")
    axes.set(xscale="log", yscale="log", xlabel="step of gradient descent")
    axes.set_ylabel(r"largest drift of $\|w_j\|^2-v_j^2$")
    axes.set_title(f"balance is kept, to time {config.until:g}")
    axes.legend(loc="center", fontsize="small")
