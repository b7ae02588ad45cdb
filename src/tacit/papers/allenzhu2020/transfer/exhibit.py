"""Section 6.2: the dense direction does not depend on a net's randomness, which explains transfer attacks.

Two nets are trained apart, of different widths, from other starts and on other batches of one dictionary. A
universal direction is learned on the first alone, by descent on points (`tacit.attack.learned_universal`, which
knows nothing of M), and used on the second, and on the first after adversarial training. So are the FGM
perturbations of the first, point by point.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tacit.attack import allenzhu2020_dense, broken_by, learned_universal
from tacit.base.threads import cores, side_by_side
from tacit.lab import Bench, Outcome
from tacit.nets import SymmetricNet
from tacit.papers.allenzhu2020._shared.nets import fresh_points, trained, world
from tacit.papers.allenzhu2020._shared.robust import awake_part
from tacit.papers.allenzhu2020._shared.settings import varied
from tacit.papers.allenzhu2020.transfer.claims import claims
from tacit.papers.allenzhu2020.transfer.figure import draw as draw
from tacit.papers.allenzhu2020.transfer.settings import Transferred

STEPS = 20  # of the search for a direction, from each of its starts
NETS = ("own", "other", "pure")


def run(config: Transferred, bench: Bench) -> Outcome:
    """Train apart, learn on one, break the others."""
    seeds = bench.seeds(config.repeats)
    data = bench.part("transfer", partial(transferred, config, bench, seeds))
    few = seeds[: config.few]
    bare = bench.part("printed", partial(transferred, varied(config, "printed"), bench, few))
    bare = bare[["universal", "fgm"]].rename(seed="few", universal="printed", fgm="printed_fgm")
    data = data.merge(bare)
    return Outcome(data, claims(data, config, bench))


def transferred(config: Transferred, bench: Bench, seeds: list[int]) -> xr.Dataset:
    """Every dictionary."""
    first = trained(config, bench, seeds, {"clean": config.clean, "pure": config.purified()})
    thin = replace(config, m=config.narrow)
    second = trained(thin, bench, seeds, {"clean": config.clean}, run=1)

    def one(seed: int) -> dict[str, np.ndarray]:
        nets = {
            "own": first["clean", seed],
            "other": second["clean", seed],
            "pure": first["pure", seed],
        }
        return of_dictionary(config, bench, seed, nets)

    found = side_by_side(one, seeds, cores())
    dims = {
        "curve": ("net", "radius"),
        "clean": ("net", "point"),
        "universal": ("net", "point"),
        "fgm": ("net", "point"),
        "coordinates": ("feature",),
    }
    return xr.Dataset(
        {
            name: (("seed", *dims.get(name, ())), np.stack([row[name] for row in found]))
            for name in found[0]
        },
        coords={"seed": seeds, "net": list(NETS), "radius": list(config.radii)},
    )


def of_dictionary(
    config: Transferred, bench: Bench, seed: int, nets: dict[str, SymmetricNet]
) -> dict[str, np.ndarray]:
    """The direction of the first net, and how each net fares along it."""
    model = world(config, bench, seed)
    known = fresh_points(config, bench, seed, config.learn, "learn")
    fresh = fresh_points(config, bench, seed, config.points)
    x, y = fresh.x, fresh.y
    reach = max(config.tau, *config.radii)
    heard = {name: awake_part(net, torch.cat([known.x, x]), reach) for name, net in nets.items()}

    def learned(name: str) -> Tensor:
        delta = learned_universal(
            heard[name], known.x, known.y, config.tau, signed=True, steps=STEPS, seed=seed
        )
        return delta / delta.norm()

    own, other = learned("own"), learned("other")
    dense = allenzhu2020_dense(model.M, model.w_star).to(x)
    gradient = heard["own"].slopes(x) @ heard["own"].w
    length = gradient.norm(dim=1, keepdim=True)
    moved = x - config.tau * y.unsqueeze(1) * gradient / torch.where(length > 0, length, 1.0)
    along = {name: heard[name] for name in NETS}
    return {
        "curve": np.array(
            [
                [float((~broken_by(net, x, y, r * own, signed=True)).double().mean()) for r in config.radii]
                for net in along.values()
            ]
        ),
        "clean": np.stack([(y * net(x) > 0).numpy() for net in along.values()]).astype(np.int8),
        "universal": np.stack(
            [(~broken_by(net, x, y, config.tau * own, signed=True)).numpy() for net in along.values()]
        ).astype(np.int8),
        "fgm": np.stack([(y * net(moved) > 0).numpy() for net in along.values()]).astype(np.int8),
        "with_dense": np.array(float(own @ dense)),
        "with_other": np.array(float(own @ other)),
        "coordinates": (own.double() @ model.M * model.w_star.sign()).numpy(),
    }  # fmt: skip
