r"""The theory's side of Figure 2: theta(u, v) = |<u, v>|/(||u|| ||v||) of w0 (start), w (clean), w' (purified).

The principle says: theta(w0, w) and theta(w0, w') are small, theta(w, w') is large, theta(w_i, w_j) is small, for
most neurons. Read over the neurons that fire on at least one of 10,000 fresh points after clean training.
"""

from functools import partial

import numpy as np
import torch
import xarray as xr

from tacit.base.threads import cores, side_by_side
from tacit.lab import Bench, Outcome
from tacit.measure.purification.angles import angles
from tacit.papers.allenzhu2020._shared.measured import alive
from tacit.papers.allenzhu2020._shared.nets import start_of, trained
from tacit.papers.allenzhu2020._shared.settings import varied
from tacit.papers.allenzhu2020.angles.claims import claims
from tacit.papers.allenzhu2020.angles.figure import BINS
from tacit.papers.allenzhu2020.angles.figure import draw as draw
from tacit.papers.allenzhu2020.angles.settings import Turned


def run(config: Turned, bench: Bench) -> Outcome:
    """Train or take the nets, and measure."""
    seeds = bench.seeds(config.repeats)
    data = bench.part("angles", partial(turned, config, bench, seeds))
    few = seeds[: config.few]
    bare = bench.part("printed", partial(turned, varied(config, "printed"), bench, few))
    bare = bare.drop_vars("pairs").rename(seed="few")
    data = data.merge(bare.rename({name: f"printed_{name}" for name in bare}))
    return Outcome(data, claims(data, config, bench))


def turned(config: Turned, bench: Bench, seeds: list[int]) -> xr.Dataset:
    """The four angles of each training."""
    nets = trained(config, bench, seeds, {"clean": config.clean, "pure": config.purified()})

    def one(seed: int) -> dict[str, np.ndarray]:
        start = start_of(config, bench, seed, 0, config.clean[0])
        clean, pure = nets["clean", seed], nets["pure", seed]
        who = alive(config, bench, seed, clean)
        still = alive(config, bench, seed, pure)
        found = angles(start.w[who], clean.w[who], pure.w[who])
        rows = {}
        for name in ("start_clean", "start_pure", "clean_pure"):
            whole = torch.full((len(who),), torch.nan, dtype=torch.float64)
            whole[who] = getattr(found, name)
            rows[name] = whole.numpy()
        pairs = found.pairs.numpy()
        counts, _ = np.histogram(pairs, BINS)
        return rows | {
            "pairs": counts / max(len(pairs), 1),
            "pair_median": np.median(pairs),
            "alive": float(who.double().mean()),
            "still": float((who & still).sum() / who.sum()),
        }

    found = side_by_side(one, seeds, cores())
    dims = {"pairs": ("seed", "bin")} | dict.fromkeys(
        ("start_clean", "start_pure", "clean_pure"), ("seed", "neuron")
    )
    return xr.Dataset(
        {name: (dims.get(name, ("seed",)), np.stack([row[name] for row in found])) for name in found[0]},
        coords={"seed": seeds},
    )  # fmt: skip
