"""The claims of Figure 10, one a layer."""

from collections.abc import Iterator

import xarray as xr

from tacit.lab import Bench, Claim
from tacit.papers.allenzhu2020.deep.claims import gain, positive
from tacit.papers.allenzhu2020.deep.settings import regime_of
from tacit.papers.allenzhu2020.fig10.settings import Features


def claims(data: xr.Dataset, config: Features, bench: Bench) -> Iterator[Claim]:
    """Coarser in every layer."""
    bar = "ours: 'closer to the real image space' in a number, the share of coarse shapes; more is more"
    regime = regime_of(config, over="neurons")
    judge = bench.claims("Section 8.1, Figure 10", source="words", bar=bar, regime=regime)
    for layer in config.layers:
        clean, robust = (data.sel(layer=layer, net=name) for name in ("clean", "robust"))
        told = " against ".join(f"{float(each.coarse.mean()):.2f}" for each in (robust, clean))
        text = f"features of layer {layer} have more of coarse shapes in the robust net ({told})"
        found = gain(robust.coarse, clean.coarse, over="neurons")
        yield positive(judge, f"layer{layer}", text, found)
