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


def claims(data: xr.Dataset, config: Active, bench: Bench) -> Iterator[Claim]:
    """It falls, not in the first epoch alone, in most layers, and ends sparse."""
    bar = "paper: activation sparsity increases as training goes"
    judge = bench.claims(
        "Section 4, Figure 5 and footnote 8", source="words", bar=bar, regime=config.regime
    )
    mean = {str(name): data.each.sel(moment=name).mean("layer") for name in data.moment.values}
    start, first, end = mean.values()
    told = f"mean over ReLUs; clean accuracy {float(data.right.mean()):.2f}"

    def fell(before: xr.DataArray) -> str:
        return f"from {float(before.mean()):.3f} to {float(end.mean()):.3f}, {told}"

    text = (
        f"the share of active neurons is less at the end than at the random start ({fell(start)})"
    )
    yield positive(judge, "start", text, gain(start, end))
    text = f"the share of active neurons is less at the end than after one epoch ({fell(first)})"
    yield positive(judge, "first", text, gain(first, end))
    change = data.share.isel(epoch=0) - data.share.isel(epoch=-1)
    text = "ReLUs whose share of active neurons is less at the end than at the start (the share)"
    found = proportion(int((change > 0).sum()), change.size, over="layers")
    bar = "ours: a net has become sparser where most of its layers have"
    yield judge("layers", text, Expected(min=MOST), found, bar=bar)
    text = f"the share of active neurons at the end ({told})"
    bar = "ours: two of three neurons are silent; the paper prints no number"
    found = mean_of(end.values, over="images")
    yield judge("sparse", text, Expected(max=SPARSE), found, source="ours", bar=bar)
