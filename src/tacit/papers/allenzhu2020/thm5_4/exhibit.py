r"""Theorem 5.4: what Theorems 5.1 and 5.3 say in linf, where ||M||_inf and ||M||_1 are small.

    clean training    is broken at   ||M||_1 / k^2                (Corollary F.6)
    FGM training      withstands     1 / (k^1.75 ||M||_inf)       (Theorem F.4)

M = I has both norms 1; blocks of two on the diagonal have up to sqrt(2). Attacked by the universal direction
-tau y sign(M w*), by FGM, and by PGD from several starts; the worst of all counts.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
import xarray as xr

from tacit.base.threads import cores, side_by_side
from tacit.data.sparse_coding import SparseSamples, matrix_norms
from tacit.lab import Bench, Outcome
from tacit.measure.purification.angles import moved_share
from tacit.nets import SymmetricNet
from tacit.papers.allenzhu2020._shared.linf import outlives
from tacit.papers.allenzhu2020._shared.nets import fresh_points, placed, trained, world
from tacit.papers.allenzhu2020._shared.robust import withstood
from tacit.papers.allenzhu2020._shared.settings import Dictionary
from tacit.papers.allenzhu2020.thm5_4.claims import claims
from tacit.papers.allenzhu2020.thm5_4.figure import draw as draw
from tacit.papers.allenzhu2020.thm5_4.settings import Box

NETS = ("clean", "pure")
PLACES = ("printed", "broken")  # radii: of adversarial training, of clean training
LINF = float("inf")
MANY = 2000  # points for clean accuracies


def run(config: Box, bench: Bench) -> Outcome:
    """Train and attack, for each dictionary."""
    seeds = bench.seeds(config.repeats)
    parts = [
        bench.part(f"on-{name}", partial(on_dictionary, config, bench, name, seeds))
        for name in bench.steps(config.dictionaries, "dictionaries")
    ]
    data = xr.concat(parts, xr.Variable("dictionary", list(config.dictionaries)))
    return Outcome(data, claims(data, config, bench))


def radius_of(config: Box, bench: Bench, dictionary: Dictionary, seed: int) -> tuple[float, float]:
    """1/(k^1.75 ||M||_inf) and ||M||_1/k^2."""
    rows, columns = matrix_norms(world(config.on(dictionary), bench, seed).M)
    return config.unit / rows, columns / config.k**2


def nets_of(
    config: Box, bench: Bench, dictionary: Dictionary, seeds: Sequence[int]
) -> dict[tuple[str, int], SymmetricNet]:
    """The clean and the purified net of each seed; ||M||_inf of blocks differs a little from seed to seed."""
    found: dict[tuple[str, int], SymmetricNet] = {}
    far = {seed: radius_of(config, bench, dictionary, seed)[0] for seed in seeds}
    for radius in dict.fromkeys(far.values()):
        mine = [seed for seed in seeds if far[seed] == radius]
        courses = {"clean": config.clean, "pure": config.purified("fgm", "inf", radius)}
        found |= trained(config.on(dictionary), bench, mine, courses)
    return found


def on_dictionary(
    config: Box, bench: Bench, dictionary: Dictionary, seeds: Sequence[int]
) -> xr.Dataset:
    """Which points hold, (net, seed, radius, point), and the sweep of radii."""
    nets = nets_of(config, bench, dictionary, seeds)
    keys = [(net, seed) for net in NETS for seed in seeds]

    def one(key: tuple[str, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return attacked(config, bench, dictionary, key[1], nets[key])

    workers = 1 if bench.device == "cuda" else cores()
    clean, worst, sweep = (
        np.stack(part).reshape(len(NETS), len(seeds), *part[0].shape)
        for part in zip(*side_by_side(one, keys, workers), strict=True)
    )
    moved = [moved_share(nets["clean", seed].w, nets["pure", seed].w) for seed in seeds]
    radii = np.array([radius_of(config, bench, dictionary, seed) for seed in seeds])
    return xr.Dataset(
        {
            "clean": (("net", "seed", "fresh"), clean),
            "worst": (("net", "seed", "place", "point"), worst),
            "sweep": (("net", "seed", "radius"), sweep),
            "moved": (("seed",), moved),
            "at": (("seed", "place"), radii),
        },
        coords={"net": list(NETS), "seed": list(seeds), "place": list(PLACES), "radius": sorted(config.radii)},
    )  # fmt: skip


def attacked(
    config: Box, bench: Bench, dictionary: Dictionary, seed: int, net: SymmetricNet
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Clean, worst at both places, and the share at each radius of the sweep."""
    here = config.on(dictionary)
    model, net = world(here, bench, seed), net.to(bench.device)
    samples = placed(fresh_points(here, bench, seed, config.points), bench.device)
    at = radius_of(config, bench, dictionary, seed)
    found = [withstood(net, model, samples, radius, seed=seed, norm=LINF) for radius in at]
    few = SparseSamples(*(t[: config.shown] for t in (samples.x, samples.y, samples.z)))
    sweep, held = [], None
    for r in sorted(config.radii):
        held = outlives(net, model, few, r * config.unit, seed, held)
        sweep.append(float(held.double().mean()))
    worst = torch.stack([seen["worst"] for seen in found])
    many = placed(fresh_points(here, bench, seed, MANY, "accuracy"), bench.device)
    clean = many.y * net(many.x) > 0
    return (
        clean.cpu().numpy().astype(np.int8),
        worst.cpu().numpy().astype(np.int8),
        np.array(sweep),
    )
