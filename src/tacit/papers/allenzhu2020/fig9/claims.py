"""The claims of Section 6.2 and Figure 9, for AlexNet's first layer."""

from collections.abc import Iterator

import xarray as xr

from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of
from tacit.papers.allenzhu2020.deep.claims import all_positive, difference, gain, positive
from tacit.papers.allenzhu2020.deep.settings import regime_of
from tacit.papers.allenzhu2020.fig9.settings import Summary

SMALL = 0.36  # of ||w||^2: what theta(w, w') = .8 leaves


def claims(data: xr.Dataset, config: Summary, bench: Bench) -> Iterator[Claim]:
    """What is removed is small, dense and common; clean training brings it back."""
    regime = regime_of(config, over="filters")
    bar = "ours: 'dense' in numbers; more is more"
    judge = bench.claims("Section 6.2, Figure 9", source="words", bar=bar, regime=regime)
    yield from removed(judge, data, config)
    images = judge.but(regime=regime_of(config), bar="paper: it accumulates; ours: any loss")
    own = {name: data.own.sel(net=name) for name in ("robust", "again")}
    told = " to ".join(f"{100 * float(each.mean()):.1f}%" for each in own.values())
    text = f"{config.again} clean epochs from the purified net lose robust accuracy ({told})"
    yield positive(images, "again.robust", text, difference(own["robust"], own["again"]))
    yield from regained(judge.but(bar="paper: it accumulates; ours: any gain"), data, config)


def removed(judge: Judge, data: xr.Dataset, config: Summary) -> Iterator[Claim]:
    """Small, dense, common; of filters that still are their random start nothing of this can be told."""
    small = judge.but(bar="derived: Section 1's theta(w, w') = .8 leaves 1 - .8^2")
    text = "what adversarial training removes is a small part of a filter: ||removed||^2/||w||^2 (mean)"
    share = mean_of(data.removed_share, over="filters")
    found = (
        small("small", text, Expected(max=SMALL), share),
        dense(judge, data),
        common(judge, data),
    )
    for claim in found:
        untold = judge.but(bar=claim.bar).cannot
        short = config.too_short
        yield untold(claim.id, claim.statement, claim.expected, short) if short else claim


def dense(judge: Judge, data: xr.Dataset) -> Claim:
    """The removed part against the purified filter, in three numbers."""
    removed, robust = (data.sel(piece=name) for name in ("removed", "robust"))
    pairs = {
        "coarse": ("share of coarse shapes that it has less", robust.coarse, removed.coarse),
        "variation": ("total variation that it has more", removed.variation, robust.variation),
        "participation": (
            "waves that it is spread over more",
            removed.participation,
            robust.participation,
        ),
    }
    text = "the removed part is denser than the purified filter"
    return all_positive(judge, "dense", text, pairs, over="filters")


def common(judge: Judge, data: xr.Dataset) -> Claim:
    """One mixture for all: "universal"."""
    removed, clean = (data.likeness.sel(piece=name) for name in ("removed", "clean"))
    told = " against ".join(f"{float(each.mean()):.3f}" for each in (removed, clean))
    text = (
        f"removed parts of different filters are more alike than the filters: mean |cos| ({told})"
    )
    why = "each filter loses a part of its own"
    more = judge.but(bar="paper: the mixture is one direction for all; ours: any more")
    return positive(more, "common", text, gain(removed, clean, over="filters"), why)


def regained(judge: Judge, data: xr.Dataset, config: Summary) -> Iterator[Claim]:
    """Section 6.2: continuing clean training still accumulates the mixture."""
    again, robust = (data.sel(piece=name) for name in ("again", "robust"))
    rows = {
        "again.coarse": (
            "filters have less of coarse shapes after clean training from the purified ones",
            gain(robust.coarse, again.coarse, over="filters"),
        ),
        "again.variation": (
            "filters have more total variation after clean training from the purified ones",
            gain(again.variation, robust.variation, over="filters"),
        ),
        "again.same": (
            "what a filter gains there leans to what it had lost (mean cosine)",
            mean_of(data.returned, over="filters"),
        ),
    }
    for id, (text, found) in rows.items():
        if config.too_short:
            yield judge.cannot(id, text, Expected(min=0.0), config.too_short)
        else:
            yield positive(judge, id, text, found)
