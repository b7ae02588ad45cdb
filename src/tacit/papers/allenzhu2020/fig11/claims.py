"""The claims of Figures 6 and 11: purification happens in each layer."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.base.estimate import Estimate
from tacit.lab import Bench, Claim, Expected, Judge, Part
from tacit.papers.allenzhu2020.deep.claims import gain
from tacit.papers.allenzhu2020.deep.settings import regime_of
from tacit.papers.allenzhu2020.fig11.settings import Purified

WHERE = {"grey": "Section 8.2, Figure 11", "black": "Section 5.1, Figure 6"}


def claims(data: xr.Dataset, config: Purified, bench: Bench) -> Iterator[Claim]:
    """Robust features against clean ones and random ones, and both against natural images."""
    bar = "ours: purification in a number, the share of coarse shapes; more is more"
    regime = regime_of(config, over="neurons")
    judge = bench.claims(WHERE[config.rest], source="words", bar=bar, regime=regime)
    coarse = data.coarse
    yield in_each(judge, "robust", "have more of coarse shapes after stage 3 than after stage 2", data,
                  coarse.sel(stage="robust"), coarse.sel(stage="clean"))  # fmt: skip
    ours = judge.but(source="ours")
    yield in_each(ours, "random", "have more of coarse shapes after stage 3 than while random", data,
                  coarse.sel(stage="robust"), coarse.sel(stage="random"))  # fmt: skip
    nearer = ours.but(
        bar="ours: |log| of the total variation over that of natural images; less is nearer"
    )
    away = np.abs(np.log(data.variation / float(data.natural_variation.mean())))
    yield in_each(nearer, "natural", "are nearer to natural images after stage 3 than after stage 2", data,
                  away.sel(stage="clean"), away.sel(stage="robust"))  # fmt: skip


def in_each(
    judge: Judge, id: str, words: str, data: xr.Dataset, more: xr.DataArray, less: xr.DataArray
) -> Claim:
    """The family over layers: the mean over neurons of the one is above that of the other."""
    layers = [int(layer) for layer in data.layer.values]
    found: dict[int, Estimate] = {}
    for layer in layers:
        each = gain(more.sel(layer=layer), less.sel(layer=layer), of=len(layers), over="neurons")
        if each is not None:
            found[layer] = each
    text = f"the images that excite neurons of each layer {words}"
    above = Expected(min=0.0)
    if len(found) < len(layers):
        return judge.cannot(id, text, above, "a layer has fewer than two neurons with a gradient")
    parts = [
        Part(f"{layer}", f"layer {layer} ({shares(data, layer)})", above, found[layer])
        for layer in layers
    ]
    return judge.family(id, text, parts)


def shares(data: xr.Dataset, layer: int) -> str:
    """The mean share of coarse shapes in each stage."""
    mean = data.coarse.sel(layer=layer).mean("neuron")
    told = (f"{stage} {float(mean.sel(stage=stage)):.2f}" for stage in mean.stage.values)
    return f"coarse: {', '.join(told)}"
