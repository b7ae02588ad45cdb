"""How each quantity of Theorems 5.1 to 5.3 moves with d, all settings by one rule in d (`settings.Rule`).

Measured on each clean and purified pair of nets: clean errors, robust accuracy before and robust error after at
tau (worst of universal, FGM and PGD), the two sums of Theorem 5.1(a), the share of the weights that adversarial
training moves (Theorem 5.3(c)), the mixture's mean coefficient over alpha of the neurons that fire (Theorem 5.2),
theta(w0, w), theta(w, w'), and the critical radius along the universal direction. What the paper says of the
order of one is a claim on its exponent in d; the others are in the result.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import xarray as xr

from tacit.attack import allenzhu2020_dense, first_crossing
from tacit.base.threads import cores, side_by_side
from tacit.lab import Bench, Outcome
from tacit.measure.purification.angles import kept_of_start, moved_share, overlap, theta
from tacit.nets import SymmetricNet
from tacit.papers.allenzhu2020._shared.measured import alive, dense_part
from tacit.papers.allenzhu2020._shared.nets import fresh_points, placed, start_of, trained, world
from tacit.papers.allenzhu2020._shared.robust import awake_part, withstood
from tacit.papers.allenzhu2020._shared.settings import Finite
from tacit.papers.allenzhu2020.scaling.claims import claims
from tacit.papers.allenzhu2020.scaling.figure import draw as draw
from tacit.papers.allenzhu2020.scaling.settings import Rule

REACH = 4.0  # in units of tau, along the universal direction


def run(config: Rule, bench: Bench) -> Outcome:
    """Train and measure for each d and margin."""
    seeds = bench.seeds(config.repeats)
    cells = [(d, margin) for margin in config.margin for d in config.d]
    found = [
        bench.part(f"d{d}margin{margin:g}", partial(one_size, config.at(d, margin), bench, seeds, config.points))
        for d, margin in bench.steps(cells, "sizes")
    ]  # fmt: skip
    parts = iter(found)
    grid = [[next(parts) for _ in config.d] for _ in config.margin]
    data: xr.Dataset = xr.combine_nested(grid, concat_dim=["margin", "d"])
    data = data.assign_coords(margin=list(config.margin), d=list(config.d))
    data["k"] = ("d", [config.k(d) for d in config.d])
    return Outcome(data, claims(data, config, bench))


def one_size(config: Finite, bench: Bench, seeds: Sequence[int], points: int) -> xr.Dataset:
    """All quantities of the trainings of one size, (seed,)."""
    nets = trained(config, bench, seeds, {"clean": config.clean, "pure": config.purified()})

    def one(seed: int) -> dict[str, float]:
        return measured(config, bench, seed, points, nets["clean", seed], nets["pure", seed])

    rows = side_by_side(one, seeds, 1 if bench.device == "cuda" else cores())
    values = {name: (("seed",), np.array([row[name] for row in rows])) for name in rows[0]}
    return xr.Dataset(values, coords={"seed": list(seeds)})


def measured(
    config: Finite, bench: Bench, seed: int, points: int, clean: SymmetricNet, pure: SymmetricNet
) -> dict[str, float]:
    """All quantities of one training."""
    model = world(config, bench, seed)
    samples = placed(fresh_points(config, bench, seed, points), bench.device)
    start = start_of(config, bench, seed, 0, config.clean[0])
    before, after = (
        {name: float(held.double().mean()) for name, held in
         withstood(net.to(bench.device), model, samples, config.tau, seed=seed).items()}
        for net in (clean, pure)
    )  # fmt: skip
    who = alive(config, bench, seed, clean)
    who = who if bool(who.any()) else ~who
    dense = [dense_part(config, bench, seed, net, who)[1] for net in (clean, pure)]
    way = allenzhu2020_dense(model.M, model.w_star).to(samples.x)
    near = awake_part(clean.to(bench.device), samples.x, REACH * config.tau)
    crossed = first_crossing(
        near, samples.x, samples.y, -samples.y.unsqueeze(1) * way, reach=REACH * config.tau
    )
    return {
        "clean_error": 1 - before["clean"],
        "pure_error": 1 - after["clean"],
        "clean_robust": before["worst"],
        "pure_robust_error": 1 - after["worst"],
        "kept": kept_of_start(start.w, clean.w),
        "overlap": overlap(clean.w),
        "moved": moved_share(clean.w, pure.w),
        "mixture": dense[0],
        "mixture_pure": abs(dense[1]),
        "theta_start": float(theta(start.w[who], clean.w[who]).median()),
        "theta_pure": float(theta(clean.w[who], pure.w[who]).median()),
        "alive": float(who.double().mean()),
        "universal": float(crossed.median()),
    }
