"""The claims of Section 6.1 and Figure 8, for the filters of one training."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import xarray as xr

from tacit.base.estimate import Estimate
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of, proportion, rank_correlation
from tacit.papers.allenzhu2020.deep.claims import positive
from tacit.papers.allenzhu2020.deep.settings import regime_of
from tacit.papers.allenzhu2020.fig8.settings import Tickets

CHANCE = 0.5  # of a winner to be in the larger half of anything that says nothing about it
KEPT = 0.8  # as in allenzhu2020.lottery
WHOLE = 390  # steps of an epoch of all of CIFAR-10, in batches of 128
TOO_SHORT = (
    "an epoch of this run has {} steps, one of CIFAR-10 has 390: nothing has moved by then; the run of the "
    "paper's size decides it (--scale paper --device cuda, about a minute of one H200)"
)


def larger_half(values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Which half of the values is the larger; the middle one of an odd number is not in it."""
    flat = np.asarray(values)
    found = np.zeros(len(flat), dtype=bool)
    found[np.argsort(flat, kind="stable")[len(flat) - len(flat) // 2 :]] = True
    return found


def foretold(early: xr.DataArray, last: xr.DataArray, *, of: int = 1) -> Estimate:
    """The share of the winners (the larger half at last) that are in the larger half early; 1/2 by chance.

    The interval is the binomial's; winners are drawn from few filters, which makes it a little too wide.
    """
    won = larger_half(last)
    return proportion(int((larger_half(early) & won).sum()), int(won.sum()), of=of, over="winners")


def claims(data: xr.Dataset, config: Tickets, bench: Bench) -> Iterator[Claim]:
    """Seen at the start; seen after an epoch; kept from then on."""
    regime = regime_of(config, over="filters")
    bar = "ours: any rank correlation with the last norm above 0"
    judge = bench.claims("Section 6.1, Figure 8", source="words", bar=bar, regime=regime)
    last, start = data.norm.isel(epoch=-1), data.isel(epoch=0)

    text = "filters that the data excite more at the start end larger (rank correlation; "
    text += f"{foretold(start.response, last).value:.2f} of the winners foretold)"
    found = rank_correlation(start.response, last, over="filters")
    yield judge("start", text, Expected(min=0.0), found)

    leaning = data.from_start.isel(epoch=-1)
    won = larger_half(last)
    told = (
        f"{float(leaning[won].mean()):.2f} of winners, {float(leaning[~won].mean()):.2f} of losers"
    )
    text = f"filters that end larger lean more to what they become: theta(w0, w) (rank correlation; {told})"
    why = "filters that do not grow do not turn either: they still look like their start"
    found = rank_correlation(leaning, last, over="filters")
    ours = judge.but(
        source="ours", bar="ours: above 0, if a ticket is a start that is near its feature"
    )
    yield ours("leaning", text, Expected(min=0.0), found, because=why)

    more = data.multiple_seen.values - data.multiple.values
    told = f"{float(data.multiple_seen.mean()):.2f} against {float(data.multiple.mean()):.2f} of it at last"
    text = f"the part of the start that the data excite outgrows the whole ({told})"
    faster = judge.but(bar="paper: it 'will grow faster'")
    yield positive(faster, "grows", text, mean_of(more, over="filters"))

    yield from known(judge, data, config)


def known(judge: Judge, data: xr.Dataset, config: Tickets) -> Iterator[Claim]:
    """From when on the norms tell who wins."""
    last, quarter = data.norm.isel(epoch=-1), data.norm.sel(epoch=config.quarter)
    text = f"winners are foretold by the norms after {config.quarter} of {config.clean_epochs} epochs (share)"
    bar = "ours: more than the half that chance foretells; a quarter was chosen after a small run had .88"
    yield judge.but(source="ours", bar=bar)(
        "quarter", text, Expected(min=CHANCE), foretold(quarter, last)
    )
    first = data.norm.isel(epoch=1)
    text = "winners are foretold by the norms after one epoch (share; rank correlation "
    text += f"{rank_correlation(first, last).value:.2f})"
    early = judge.but(bar="ours: more than the half that chance foretells")
    kept = judge.but(where="Section 6.2", bar="ours: eight in ten, as in allenzhu2020.lottery")
    told = f"tickets are kept: winners after {config.tenth} of {config.clean_epochs} epochs win at last (share)"
    if config.batches < WHOLE:
        why = TOO_SHORT.format(config.batches)
        yield early.cannot("first", text, Expected(min=CHANCE), why)
        yield kept.cannot("kept", told, Expected(min=KEPT), why)
        return
    yield early("first", text, Expected(min=CHANCE), foretold(first, last))
    found = foretold(data.norm.sel(epoch=config.tenth), last)
    yield kept("kept", told, Expected(min=KEPT), found)
