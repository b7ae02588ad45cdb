"""Figures 6 and 11: the images that excite neurons of layer l while it is random, clean and robust.

The nets are those of the three stages (`deep/stages.py`): below l all are the same robust layers, so what changes
is layer l itself. `coarse` is the share of an image's energy in coarse shapes, `variation` its total variation;
`natural_coarse` and `natural_variation` are those of test images.
"""

from functools import partial

import xarray as xr

from tacit.lab import Bench, Outcome
from tacit.measure.features import coarse_share, total_variation
from tacit.papers.allenzhu2020.deep.features import features_of
from tacit.papers.allenzhu2020.deep.nets import images_of
from tacit.papers.allenzhu2020.deep.stages import STAGES, staged
from tacit.papers.allenzhu2020.fig11.claims import claims
from tacit.papers.allenzhu2020.fig11.figure import draw as draw
from tacit.papers.allenzhu2020.fig11.settings import RESTS, Purified


def run(config: Purified, bench: Bench) -> Outcome:
    """Train, ascend, judge; a layer whose images are known is not trained again."""
    found = [
        bench.part(f"layer-{layer}", partial(layer_features, config, layer, bench))
        for layer in bench.steps(config.layers, "layers, three stages each")
    ]
    layers = xr.Variable("layer", list(config.layers))
    data = xr.concat(found, layers, join="outer").merge(natural(config))
    return Outcome(data, tuple(claims(data, config, bench)))


def layer_features(config: Purified, layer: int, bench: Bench) -> xr.Dataset:
    """One layer through its stages, all from the same random images."""
    nets, shape = staged(config, bench, layer).nets, images_of(config).shape
    each = [
        features_of(
            nets[stage], layer, shape,
            neurons=config.neurons, steps=config.steps, bench=bench, rest=RESTS[config.rest],
        )
        for stage in STAGES
    ]  # fmt: skip
    return xr.concat(each, xr.Variable("stage", list(STAGES)))


def natural(config: Purified) -> xr.Dataset:
    """The two numbers of test images."""
    x, _ = images_of(config).tested(config.natural, "cpu")
    values = {"natural_coarse": coarse_share(x), "natural_variation": total_variation(x)}
    return xr.Dataset({name: ("picture", each.numpy()) for name, each in values.items()})
