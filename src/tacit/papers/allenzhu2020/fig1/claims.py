"""The claims of Figure 1, and of Section 1's principle for these filters."""

from collections.abc import Iterator

import xarray as xr

from tacit.base.estimate import Estimate
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import proportion
from tacit.papers.allenzhu2020.deep.claims import all_positive, difference, gain, positive
from tacit.papers.allenzhu2020.deep.settings import regime_of
from tacit.papers.allenzhu2020.fig1.settings import Purified

SMALL, LARGE = 0.2, 0.8  # Section 1
MOST = Expected(min=0.5)


def claims(data: xr.Dataset, config: Purified, bench: Bench) -> Iterator[Claim]:
    """Purer, nearer to natural images, the same features; and that purification took place at all."""
    bar = "ours: 'purified' in two numbers, the share of coarse shapes and the total variation"
    regime = regime_of(config, over="filters")
    judge = bench.claims("Section 1, Figure 1", source="words", bar=bar, regime=regime)
    yield from purer(judge, data)
    more = judge.but(source="ours", bar="ours: any more than as many clean epochs bring")
    yield beyond(more, data)
    yield natural(judge.but(source="ours", bar="ours: nearer than the clean filter is"), data)
    yield from angles(judge.but(where="Section 1, Figure 2"), data, config)
    images = judge.but(regime=regime_of(config), bar="ours: any gain; else nothing is purified")
    gained = difference(data.own.sel(net="robust"), data.own.sel(net="clean"))
    told = [f"{100 * float(data.own.sel(net=name).mean()):.1f}%" for name in ("robust", "clean")]
    text = f"adversarial training makes the net robust: accuracy under attack ({' against '.join(told)})"
    yield positive(images, "robust", text, gained)


def purer(judge: Judge, data: xr.Dataset) -> Iterator[Claim]:
    """Filter by filter, w' against w."""
    clean, robust = (data.sel(net=name) for name in ("clean", "robust"))
    told = " against ".join(f"{float(each.coarse.mean()):.3f}" for each in (robust, clean))
    text = f"purified filters have more of coarse shapes ({told} of their energy)"
    yield positive(judge, "coarse", text, gain(robust.coarse, clean.coarse, over="filters"))
    told = " against ".join(f"{float(each.variation.mean()):.3f}" for each in (robust, clean))
    text = f"purified filters have less total variation ({told} standard deviations a pixel)"
    found = gain(clean.variation, robust.variation, over="filters")
    yield positive(judge, "variation", text, found)


def beyond(judge: Judge, data: xr.Dataset) -> Claim:
    """Filters get smoother in any training that is not at its end: against a longer clean one."""
    longer, robust = (data.sel(net=name) for name in ("longer", "robust"))
    pairs = {
        "coarse": ("share of coarse shapes that w' has more", robust.coarse, longer.coarse),
        "variation": ("total variation that w' has less", longer.variation, robust.variation),
    }
    text = "adversarial training purifies filters more than as many more epochs of clean training"
    return all_positive(judge, "beyond", text, pairs, over="filters")


def natural(judge: Judge, data: xr.Dataset) -> Claim:
    """Patches of images as the yardstick: each filter's distance from their means, before and after."""
    rows = {
        "variation": (
            "total variation: nearer to that of patches of images by",
            abs(data.variation - data.natural_variation.mean("patch")),
        ),
        "spectrum": (
            "spectrum: share of the energy that is no longer in other bands than that of patches is",
            abs(data.spectrum - data.natural_spectrum.mean("patch")).sum("band") / 2,
        ),
    }
    pairs = {
        id: (text, away.sel(net="clean"), away.sel(net="robust"))
        for id, (text, away) in rows.items()
    }
    text = "purified filters are nearer to patches of natural images: total variation and spectrum"
    return all_positive(judge, "natural", text, pairs, over="filters")


def angles(judge: Judge, data: xr.Dataset, config: Purified) -> Iterator[Claim]:
    """Section 1: "for most neurons", with c = .2 and C = .8."""
    bar = "paper: 'for most neurons', 'such as' .2 and .8; ours: more than half for most"
    judge = judge.but(source="number", bar=bar)

    def share(values: xr.DataArray) -> Estimate:
        return proportion(int(values.sum()), values.size, over="filters")

    def middle(values: xr.DataArray) -> str:
        return f"share of filters; median {float(values.median()):.2f}"

    text = f"a purified filter is the feature that it was: theta(w, w') >= .8 ({middle(data.clean_robust)})"
    if config.too_short:  # weights that hardly move are near whatever they become
        yield judge.cannot("same", text, MOST, config.too_short)
    else:
        yield judge("same", text, MOST, share(data.clean_robust >= LARGE))
    for id, name, other, words in (
        ("start.clean", "start_clean", "w", "clean training turns filters far"),
        ("start.robust", "start_robust", "w'", "clean and adversarial training turn filters far"),
    ):
        text = f"{words}: theta(w0, {other}) <= .2 ({middle(data[name])})"
        if config.too_short:
            yield judge.cannot(id, text, MOST, config.too_short)
            continue
        epochs = config.clean_epochs + (config.epochs if name == "start_robust" else 0)
        left = f"weight decay alone leaves {100 * config.left_of_start(epochs):.0f}% of the start"
        yield judge(id, text, MOST, share(data[name] <= SMALL), because=left)
