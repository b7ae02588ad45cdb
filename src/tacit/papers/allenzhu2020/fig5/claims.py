"""The claims of Figure 5, and of footnote 8, which cites it."""

from collections.abc import Iterator

import xarray as xr

from tacit.base.statistics import proportion
from tacit.lab import Bench, Claim, Expected
from tacit.measure import mean_of
from tacit.papers.allenzhu2020.deep.claims import gain, positive
from tacit.papers.allenzhu2020.fig5.settings import Active

SPARSE = 1 / 3
MOST = 0.5
TOO_SMALL = (
    "small nets, trained for a few hundred steps, do not show it (WideResNet-16-2 on 5,000 images of 16 x "
    "16, 10 epochs, seed 0: from .499 at the start and .483 after one epoch to .497): the paper's size "
    "decides it (--scale paper --device cuda, about 4 minutes of one H200)"
)


def claims(data: xr.Dataset, config: Active, bench: Bench) -> Iterator[Claim]:
    """It falls, not in the first epoch alone, in most layers, and ends sparse."""
    bar = "paper: activation sparsity increases as training goes"
    judge = bench.claims(
        "Section 4, Figure 5 and footnote 8", source="words", bar=bar, regime=config.regime
    )
    start, first, end = (data.each.sel(moment=name).mean("layer") for name in data.moment.values)
    told = f"mean over ReLUs; clean accuracy {float(data.right.mean()):.2f}"
    fell = data.share.isel(epoch=0) - data.share.isel(epoch=-1) > 0

    def from_to(before: xr.DataArray) -> str:
        return f"from {float(before.mean()):.3f} to {float(end.mean()):.3f}, {told}"

    least, most = Expected(min=MOST), Expected(max=SPARSE)
    ours = judge.but(
        source="ours", bar="ours: two of three neurons are silent; the paper prints no number"
    )
    layers = judge.but(bar="ours: a net has become sparser where most of its layers have")
    texts = {
        "start": "the share of active neurons is less at the end than at the random start "
        f"({from_to(start)})",
        "first": "the share of active neurons is less at the end than after one epoch "
        f"({from_to(first)})",
        "layers": "ReLUs whose share of active neurons is less at the end than at the start "
        f"({int(fell.sum())} of {fell.size}, the share)",
        "sparse": f"the share of active neurons at the end ({float(end.mean()):.3f}, {told})",
    }
    if not (config.whole or judge.smoke):
        for id in ("start", "first"):
            yield judge.cannot(id, texts[id], Expected(min=0.0), TOO_SMALL)
        yield layers.cannot("layers", texts["layers"], least, TOO_SMALL)
        yield ours.cannot("sparse", texts["sparse"], most, TOO_SMALL)
        return
    yield positive(judge, "start", texts["start"], gain(start, end))
    yield positive(judge, "first", texts["first"], gain(first, end))
    found = proportion(int(fell.sum()), fell.size, over="layers")
    yield layers("layers", texts["layers"], least, found)
    yield ours("sparse", texts["sparse"], most, mean_of(end.values, over="images"))
