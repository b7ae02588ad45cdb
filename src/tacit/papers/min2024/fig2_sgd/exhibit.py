r"""Figures 2 and 5 as they were made: SGD in batches, and an attack that starts at the point itself.

`min2024.fig2` and `fig5` follow gradient flow, as Conjecture 1 does. Here the released loop runs
(`prelu_f_dist.py` and its config: batches of 100, steps of 0.2, 401 epochs), on the same data and from the same
weights, and the flow to the loss at which SGD ended. SGD's net is measured as the few bundles that its neurons
have become, whose difference is bounded (`merge_error`, of the net's mass); then distances and radii are exact,
or certified.

**The released attack.** From the point itself, steps of 0.1 along the normalised gradient, projected on the ball.
At a centre of F^(p), p > 2, the gradient points along that centre alone, and the value along it is (1 - r)^p > 0
for every r < 1: the attack walks there and stays. The nearest broken point is at sqrt(2)/2, towards a centre of
the other class. `zero` is the share of points that this attack does not break; it counts a point as broken if
any of its steps does.

All alphas of one p and one seed are trained as an ensemble: they see batches in one order.
"""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from tacit.attack import known_norm
from tacit.attack.target import TwoLayerTarget
from tacit.base.linalg import span_axes
from tacit.base.threads import cores, side_by_side
from tacit.data import Samples
from tacit.lab import Bench, Outcome
from tacit.measure.distance.bundled import bundled
from tacit.nets import TwoLayerNet
from tacit.papers.min2024.fig2.exhibit import Drawn, curves, draw_one, of_net, shown_alpha
from tacit.papers.min2024.fig2_sgd.claims import claims
from tacit.papers.min2024.fig2_sgd.figure import draw as draw
from tacit.papers.min2024.fig2_sgd.settings import Released
from tacit.train import FlowWarning, Until, descend, gradient_flow

SCOUTS = 4  # weighted points for each centre


def run(config: Released, bench: Bench) -> Outcome:
    """Train every p and seed, each a part of its own; measure; judge."""
    seeds = bench.seeds(config.repeats)
    pairs = [(p, seed) for p in config.p for seed in seeds]
    found = [
        bench.part(f"p{p:g}-seed{seed}", partial(one_ensemble, config, bench, p, seed))
        for p, seed in bench.steps(pairs, f"ensembles of {len(config.alpha)} nets")
    ]
    rows = [found[i : i + len(seeds)] for i in range(0, len(found), len(seeds))]
    data: xr.Dataset = xr.combine_nested(rows, concat_dim=["p", "seed"])
    data = data.transpose("alpha", "seed", "p", ...).assign_coords(
        alpha=list(config.alpha), seed=seeds, p=list(config.p), end=["lower", "upper"],
        sign=["+", "-"], radius=list(config.radius),
    )  # fmt: skip
    data = data.assign(curves(data, config))
    data.attrs["shown"] = shown_alpha(config)
    return Outcome(data, tuple(claims(data, config, bench)))


def one_ensemble(config: Released, bench: Bench, p: float, seed: int) -> xr.Dataset:
    """SGD's nets for all alphas, the flow's, and what is read off both."""
    drawn = side_by_side(partial(draw_one, config, bench, seed=seed), config.alpha, cores())
    x, y = (
        torch.stack([getattr(each.train, name) for each in drawn]).to(bench.device)
        for name in ("x", "y")
    )
    w, v = (
        torch.stack([getattr(each, name) for each in drawn]).to(x)
        for name in ("w", "v")
    )  # fmt: skip
    ended = descend(
        TwoLayerNet(w, v, p=p), x, y, step=config.step, epochs=config.epochs, batch=config.batch,
        generator=bench.generator("fig2_sgd", "order", seed=seed), record=(config.steps,),
    ).history[-1]  # fmt: skip

    def measured(i: int) -> dict[str, object]:
        """Of one alpha."""
        net = TwoLayerNet(ended.net.w[i].double().cpu(), ended.net.v[i].double().cpu(), p=p)
        return of_pair(config, drawn[i], net, float(ended.loss[i].double().log()), seed, x[i], y[i])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlowWarning)  # fig2 counts flows that stop early
        found = [measured(i) for i in range(len(drawn))]
    dims = {
        "distance": ("end",), "flow_distance": ("end",), "within": ("sign",), "zero": ("radius",),
        **dict.fromkeys(("lower", "upper", "flow_lower", "flow_upper"), ("point",)),
    }  # fmt: skip
    return xr.Dataset(
        {
            name: (("alpha", *dims.get(name, ())), np.array([each[name] for each in found]))
            for name in found[0]
        }
    )


def of_pair(
    config: Released,
    drawn: Drawn,
    net: TwoLayerNet,
    log_loss: float,
    seed: int,
    x: Float[Tensor, "n D"],
    y: Float[Tensor, " n"],
) -> dict[str, object]:
    """What is read off SGD's net, and off the flow's from the same weights at that loss on the same (x, y)."""
    few = bundled(net)
    start = TwoLayerNet(drawn.w.to(x.device), drawn.v.to(x.device), p=net.p)
    until = Until(log_loss=log_loss)
    flowed = gradient_flow(start, x, y, until=until, scout=SCOUTS * config.K, seed=seed).net
    flow = of_net(replace(flowed, w=flowed.w.cpu(), v=flowed.v.cpu()), drawn.mixture, drawn.test)
    return of_net(few.net, drawn.mixture, drawn.test) | {
        "log_loss": log_loss,
        "merge_error": few.error,
        "zero": from_zero(few.net, drawn.test, config),
        **{f"flow_{name}": flow[name] for name in ("distance", "lower", "upper")},
    }


def from_zero(net: TwoLayerNet, test: Samples, config: Released) -> list[float]:
    """The share of points that the released attack leaves at each radius (at radius 0, the accuracy).

    It never leaves x + span(W), and walks in coordinates of that span, at all radii at once; without a gradient
    it stays where it is.
    """
    axes, l2 = span_axes(net.w), known_norm(2)
    target = TwoLayerTarget(replace(net, w=net.w @ axes))
    x = (test.x @ axes).repeat(len(config.radius), 1)
    y = test.y.repeat(len(config.radius))
    radius = x.new_tensor(config.radius).repeat_interleave(len(test.y)).unsqueeze(1)
    delta, left = torch.zeros_like(x), torch.ones_like(y, dtype=torch.bool)
    for _ in range(config.attack_steps + 1):
        f, pullback = target.with_pullback(x + delta)
        left &= y * f > 0
        delta = l2.project(delta + config.attack_step * l2.steepest(pullback(-y)), radius, None)
    return left.double().view(len(config.radius), -1).mean(1).tolist()
