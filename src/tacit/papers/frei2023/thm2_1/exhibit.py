r"""Theorem 2.1: gradient flow converges in direction to a KKT point of the maximum-margin problem.

    min 1/2 ||theta||^2   such that   y_i N_theta(x_i) >= 1 for every i                               (2)

for homogeneous ReLU nets, exponential or logistic loss, once L < 1/n (frei2023, Section 2; Lyu & Li 2020; Ji &
Telgarsky 2020). For the logistic loss that must read L < log(2)/n, l(0)/n in general: log(1 + e^.5) = .97 < 1, at
a margin of -.5. Assumption 2.2 is not needed for it. theta is scaled to least margin 1; multipliers lambda and
Clarke subgradients come from `measure.kkt_residual`, with slackness at most SLACK:

    rho = ||theta - sum_i lambda_i d m_i|| / ||theta||,    slackness = sum_i lambda_i (m_i - 1) / sum_i lambda_i

over all rows: biases, second layer, neurons that are off. (Those which the flow retired count as if nothing
explained them.) A flow at log-loss -l has slackness of the order log(n)/l: a small one needs a deep flow.
Every flow goes through the same depths, whatever its residual: how it falls is measured and not arranged.

Where one neuron of each sign is left the limit is a convex program, and `train.two_neuron_max_margin` solves it:
the KKT point itself, exact to rounding, and the flow's way to it as a cosine. Below a log-loss of -100 both
losses have the same flow in float64, so the united nets of both are followed together.

From a large init rho is bounded below, whatever the multipliers, at the depth where it is measured: what of w_0
lies outside span(x~) never moves, and ||(w_j, b_j)||^2 - v_j^2 is conserved while it vanishes at a KKT point,

    rho >= ||P_out theta_0|| / ||theta||      and      rho >= |sum_j ||(w_j, b_j)||^2 - v_j^2| / ||theta||^2.
"""

from functools import partial

import torch
import xarray as xr

from tacit.lab import Bench, Outcome
from tacit.papers._shared.assumptions import assumption_line, missing_line
from tacit.papers.frei2023.thm2_1.claims import claims
from tacit.papers.frei2023.thm2_1.figure import draw as draw
from tacit.papers.frei2023.thm2_1.flows import data_of, deep_of, flow_of, pair_net
from tacit.papers.frei2023.thm2_1.settings import Direction
from tacit.papers.frei2023.thm2_1.sweeps import (
    descent,
    inside,
    large_inits,
    rises,
    small_sets,
    widths,
)


def run(config: Direction, bench: Bench) -> Outcome:
    """The grid of flows, their united continuation, the exact limit, and the sweeps around them."""
    seeds = bench.seeds(config.repeats)
    grid, limits = [], []
    cells = [
        (sigma, loss, init)
        for sigma in config.sigma
        for loss in config.loss
        for init in config.init
    ]
    for seed in seeds:
        for sigma in config.sigma:
            mixture, samples = data_of(config, bench, sigma, seed)
            bench.tell(missing_line(samples, mixture))
            bench.tell(assumption_line(mixture))
        flows = [
            bench.part(f"flow.{seed}.{i}", partial(flow_of, config, bench, *cell, seed))
            for i, cell in enumerate(bench.steps(cells, "flows"))
        ]
        per = len(cells) // len(config.sigma)
        by_sigma = [flows[i : i + per] for i in range(0, len(cells), per)]
        grid.append(gathered(flows, config))
        limits.append(
            xr.concat(
                [
                    bench.part(
                        f"deep.{seed}.{i}", partial(deep_of, config, bench, sigma, own, seed)
                    )
                    for i, (sigma, own) in enumerate(
                        bench.steps(zip(config.sigma, by_sigma, strict=True), "united")
                    )
                ],
                "sigma",
            )
        )
    again = [
        xr.merge(
            bench.part(f"{name}.{seed}", partial(measure, config, bench, seed))
            for name, measure in (("width", widths), ("descent", descent), ("inside", inside))
        )
        for seed in bench.steps(seeds, "widths, descent, multipliers")
    ]
    sweeps = {"rise": rises, "large": large_inits, "small": small_sets}
    others = [
        bench.part(name, partial(measure, config, bench))
        for name, measure in bench.steps(sweeps.items(), "sweeps")
    ]
    data = xr.merge([*(xr.concat(each, "seed") for each in (grid, limits, again)), *others])
    data = data.assign_coords(
        seed=seeds, sigma=list(config.sigma), loss=list(config.loss), init=list(config.init),
        depth=list(config.depths), deep=list(config.deep),
    )  # fmt: skip
    nets = {
        f"limit.sigma{sigma:g}": pair_net(torch.from_numpy(data.limit.values[0, i]))
        for i, sigma in enumerate(config.sigma)
    }
    return Outcome(data, claims(data, config, bench), nets)


def gathered(flows: list[xr.Dataset], config: Direction) -> xr.Dataset:
    """The flows of a seed on the grid (sigma, loss, init)."""
    shape = (len(config.sigma), len(config.loss), len(config.init))
    every = xr.concat(flows, "cell").drop_vars("united")
    return xr.Dataset(
        {
            name: (("sigma", "loss", "init", "depth"), values.values.reshape(*shape, -1))
            for name, values in every.items()
        }
    )
