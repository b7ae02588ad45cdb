r"""Section 6.2: "even if we use w_i = M_i as initialization, clean training will still accumulate" the mixture.

One neuron a feature, w_i = sign(w*_i) M_i, the bias at its ceiling from the first step. In the dictionary the
start is diagonal: what stands beside the diagonal later was accumulated. beta is its mean, relative to alpha.
"""

from functools import partial

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tacit.lab import Bench, Outcome
from tacit.measure.purification.mixture import coordinates
from tacit.nets import SymmetricNet
from tacit.papers.allenzhu2020._shared.measured import KINDS, alive, dense_part, held_by, of_each
from tacit.papers.allenzhu2020._shared.nets import world
from tacit.papers.allenzhu2020.from_pure.claims import claims
from tacit.papers.allenzhu2020.from_pure.figure import draw as draw
from tacit.papers.allenzhu2020.from_pure.settings import FromPure

SHOWN = 60  # features of the pictures


def run(config: FromPure, bench: Bench) -> Outcome:
    """Train from pure features, and measure beside clean nets from random weights."""
    seeds = bench.seeds(config.repeats)
    data = bench.part("pure", partial(accumulated, config, bench, seeds))
    return Outcome(data, claims(data, config, bench))


def accumulated(config: FromPure, bench: Bench, seeds: list[int]) -> xr.Dataset:
    """All nets."""
    dims = {**dict.fromkeys(KINDS, ("point",)), "picture": ("neuron", "feature")}
    read = partial(one_net, config, bench)
    data = of_each(config, bench, seeds, {"clean": config.clean, **config.legs}, read, dims)
    picture = data.picture.isel(seed=0).sel(course=list(config.legs))
    picture = picture.rename({"course": "leg"}).astype(np.float32)
    return data.drop_vars("picture").assign(picture=picture)


def one_net(
    config: FromPure, bench: Bench, name: str, seed: int, net: SymmetricNet
) -> dict[str, Tensor | float]:
    """Points held, the mixture, and the first neurons in the dictionary, signs by w*."""
    model = world(config, bench, seed)
    who = alive(config, bench, seed, net)
    dense, relative = dense_part(config, bench, seed, net, who)
    few = min(SHOWN, config.features)
    table = coordinates(net.w[:few], model.M) * model.w_star.sign()
    seen = held_by(config, bench, config.points, 2, name, seed, net)
    return {
        **{kind: held.to(torch.int8) for kind, held in seen.items()},
        "dense": dense,
        "relative": relative,
        "alive": float(who.double().mean()),
        "picture": table[:, :few].to(torch.float32),
    }
