r"""Images that are centred and not normalized (Section 5.2.1, footnote 4).

"When training pReLU networks, some normalization of the data is required to improve training stability": without
it a neuron passes on ||x||^p times what it does for x/||x||, and a centred digit has a length of about 7. The net
of the largest p is trained again on such images, from the same weights and in the same order. The released layer
divides by ||x||^(p-1); at p = 1 both are one.

*Stability* is read off test accuracy epoch by epoch: its largest fall from one epoch to the next.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import xarray as xr

from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of
from tacit.papers.min2024.fig3.settings import Curves
from tacit.papers.min2024.images.nets import Pictures
from tacit.papers.min2024.images.training import Watched, trained_nets

WHERE = "Section 5.2.1, footnote 4"


def raw_accuracy(
    config: Curves, bench: Bench, pictures: Pictures, watched: Watched
) -> dict[str, xr.DataArray]:
    """Test accuracy (epoch, seed) of the nets of the largest p on images that nothing has normalized."""
    raw = replace(config, layer="raw", p=(max(config.p),))
    _, curves = trained_nets(raw, bench, pictures, watched, name="raw")
    return {"raw_accuracy": curves.test_accuracy.isel(p=0, drop=True)}


def largest_fall(accuracy: xr.DataArray) -> xr.DataArray:
    """From one epoch to the next, once there is a first epoch; 0 where it never falls."""
    return (-accuracy.isel(epoch=slice(1, None)).diff("epoch")).max("epoch").clip(min=0)


def raw_claims(data: xr.Dataset, config: Curves, judge: Judge) -> Iterator[Claim]:
    """With the normalization next to without: how far accuracy falls, and where it ends."""
    p = max(config.p)
    if p == 1 or config.epochs < 2:
        return
    judge, with_it = judge.but(where=WHERE), data.test_accuracy.sel(p=p)
    without, normalized = largest_fall(data.raw_accuracy), largest_fall(with_it)
    falls = (without - normalized).values.astype(np.float64)
    text = (
        f"p = {p:g}: without normalization training is less stable (the largest fall of test accuracy from one "
        f"epoch to the next, less that with it; on average {float(without.mean()):.4f} and "
        f"{float(normalized.mean()):.4f})"
    )
    bar = "ours: stability is that accuracy does not fall"
    yield judge("raw.falls", text, Expected(min=0.0), mean_of(falls), bar=bar)
    ends = (with_it - data.raw_accuracy).isel(epoch=-1).values.astype(np.float64)
    text = (
        f"p = {p:g}: without normalization training ends at a lower test accuracy (the difference)"
    )
    bar = "ours: what is required is missed at the end"
    yield judge("raw.ends", text, Expected(min=0.0), mean_of(ends), bar=bar, source="ours")
