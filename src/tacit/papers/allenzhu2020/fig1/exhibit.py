"""Figure 1: the filters of AlexNet's first layer after clean training, w, and after adversarial training from
there, w'.

`coarse` is the share of a filter's energy in coarse shapes and `variation` its total variation: the two numbers
for what the paper shows and calls purified. Patches of training images are the yardstick for both
(`natural_spectrum`, `natural_variation`). `start_clean`, `start_robust` and `clean_robust` are Section 1's
angles theta(w0, w), theta(w0, w') and theta(w, w'), filter by filter. The net `longer` went on from w with
clean training instead, for as many epochs: what both have in common is not purification.
"""

from functools import partial

import torch
import xarray as xr

from tacit.lab import Bench, Outcome
from tacit.measure.purification.angles import angles
from tacit.papers.allenzhu2020.deep.filters import all_looked_at, patches, seen
from tacit.papers.allenzhu2020.fig1.claims import claims
from tacit.papers.allenzhu2020.fig1.figure import draw as draw
from tacit.papers.allenzhu2020.fig1.settings import Purified

MOMENTS = ("random", "clean", "robust")
NETS = (*MOMENTS, "longer")


def run(config: Purified, bench: Bench) -> Outcome:
    """Train, look, judge."""
    data = bench.part("nets", partial(all_looked_at, config, bench, NETS, points=config.points))
    data = data.assign({**turned(data), **natural(config, bench, data.sizes["height"])})
    return Outcome(data, tuple(claims(data, config, bench)))


def turned(data: xr.Dataset) -> dict[str, xr.Variable]:
    """Section 1's angles of each filter."""
    rows = (torch.from_numpy(data["filter"].sel(net=name).values).flatten(1) for name in MOMENTS)
    found = angles(*rows)
    values = {
        "start_clean": found.start_clean,
        "start_robust": found.start_pure,
        "clean_robust": found.clean_pure,
    }
    return {name: xr.Variable("neuron", t.numpy()) for name, t in values.items()}


def natural(config: Purified, bench: Bench, side: int) -> dict[str, xr.Variable]:
    """The same numbers of patches of images; those of one colour have none, and are left out."""
    found = seen(patches(config, bench, config.patches, side)).dropna("neuron")
    names = {"variation": ("patch",), "spectrum": ("patch", "band")}
    return {
        f"natural_{name}": xr.Variable(dims, found[name].values) for name, dims in names.items()
    }
