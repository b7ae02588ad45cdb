"""Figure 10: the images that excite neurons of several layers, in the clean net and in the robust one.

Plain gradient ascent from a random image (footnote 16), the same for both nets. `coarse` is the share of an
image's energy in coarse shapes: the number for what the paper shows and calls visually meaningful.
"""

from functools import partial

import xarray as xr

from tacit.lab import Bench, Outcome
from tacit.papers.allenzhu2020.deep.features import features_of
from tacit.papers.allenzhu2020.deep.nets import images_of, nets_of
from tacit.papers.allenzhu2020.fig10.claims import claims
from tacit.papers.allenzhu2020.fig10.figure import draw as draw
from tacit.papers.allenzhu2020.fig10.settings import Features


def run(config: Features, bench: Bench) -> Outcome:
    """Train, ascend, judge."""
    shape = images_of(config).shape
    nets = nets_of(config, bench, ("clean", config.attacker))
    cells = [(layer, name) for layer in config.layers for name in nets]
    found = {
        (layer, name): bench.part(
            f"layer-{layer}-{name}",
            partial(
                features_of, nets[name], layer, shape,
                neurons=config.neurons, steps=config.steps, bench=bench,
            ),
        )
        for layer, name in bench.steps(cells, "layers and nets")
    }  # fmt: skip
    both = xr.Variable("net", ["clean", "robust"])
    layers = [xr.concat([found[layer, name] for name in nets], both) for layer in config.layers]
    data = xr.concat(layers, xr.Variable("layer", list(config.layers)), join="outer")
    return Outcome(data, tuple(claims(data, config, bench)))
