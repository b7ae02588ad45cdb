"""The claims of Figure 2: three inequalities for most neurons, and the accuracies of its caption."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.base.estimate import Certain
from tacit.lab import Bench, Claim, Expected, Judge, Part
from tacit.measure import proportion
from tacit.papers.allenzhu2020.deep.claims import share_of
from tacit.papers.allenzhu2020.deep.settings import regime_of, why_not
from tacit.papers.allenzhu2020.fig2.settings import Turned

SMALL, LARGE = 0.2, 0.8  # Section 1: "such as"
MOST = Expected(min=0.5)
STAGE, IMAGES, FEW = (
    50,
    50_000,
    0.1,
)  # a stage of the paper, and how little of it turns no weights
TOO_SHORT = (
    "so few steps leave weights near where they began, and then all of them are near: run it with "
    "--scale paper --device cuda"
)
CAPTION = {  # stage, accuracy: what the caption prints
    ("clean", "plain"): ("clean accuracy after stage 2", Expected(min=0.80)),
    ("clean", "own"): ("robust accuracy after stage 2", Expected(max=0.005)),
    ("robust", "plain"): ("clean accuracy after stage 3", Expected(min=0.65)),
    ("robust", "own"): ("robust accuracy after stage 3", Expected(min=0.42)),
}


def claims(data: xr.Dataset, config: Turned, bench: Bench) -> Iterator[Claim]:
    """For most neurons of every layer: far from the start, near after purification, apart from each other."""
    bar = "ours: more than half of a layer's neurons, for 'most'; .2 and .8 are the paper's"
    regime = regime_of(config, over="neurons")
    judge = bench.claims("Section 1, Figure 2", source="words", bar=bar, regime=regime)
    order = judge.but(source="order", bar="paper: the order; ours: more than half of the neurons")
    above = (data.clean_robust > data.start_clean) & (data.clean_robust > data.start_robust)
    rows = (
        ("start.clean", "theta(w0, w) <= .2: clean training turns features far", judge,
         data.start_clean <= SMALL),
        ("start.robust", "theta(w0, w') <= .2: both trainings together turn features far", judge,
         data.start_robust <= SMALL),
        ("clean.robust", "theta(w, w') >= .8: adversarial training turns features little", judge,
         data.clean_robust >= LARGE),
        ("pairs", "theta(w_i, w_j) <= .2 for most other neurons j: features differ from one another", judge,
         data.apart > 0.5),
        ("order", "theta(w, w') is above theta(w0, w) and theta(w0, w')", order, above),
    )  # fmt: skip
    short = config.clean_epochs * (config.train or IMAGES) < FEW * STAGE * IMAGES
    for id, text, each, agree in rows:
        yield each.cannot(id, text, MOST, TOO_SHORT) if short else most(each, id, text, data, agree)
    yield caption(
        judge.but(source="number", bar="paper: the caption's; .005 for its 0%"), data, config
    )
    yield reached(judge.but(where="Section 8.2, footnote 17"), data, config)


def name_of(unit: xr.Dataset) -> str:
    """A layer as the reader knows it."""
    return f"{unit.net.item()}, layer {unit.layer.item()}"


def most(judge: Judge, id: str, text: str, data: xr.Dataset, agree: xr.DataArray) -> Claim:
    """The family over layers: more than half of the neurons agree."""
    parts = []
    for i in range(data.sizes["unit"]):
        there = data.clean_robust.isel(unit=i).notnull().values
        yes, n = int(agree.isel(unit=i).values[there].sum()), int(there.sum())
        share = proportion(yes, n, of=data.sizes["unit"], over="neurons")
        unit = data.isel(unit=i)
        id_of = f"{unit.net.item().lower()}.{unit.layer.item()}"
        parts.append(Part(id_of, f"{name_of(unit)}: share of {n} neurons", MOST, share))
    return judge.family(id, f"{text}, for most neurons of each layer", parts)


def residual(data: xr.Dataset) -> xr.Dataset:
    """The layers that have stages."""
    return data.isel(unit=np.flatnonzero(data.net.values != "AlexNet"))


def caption(judge: Judge, data: xr.Dataset, config: Turned) -> Claim:
    """The accuracies of the caption, for each layer."""
    text = "the nets have the caption's accuracies: stage 2 > 80% and 0%, stage 3 > 65% and > 42%"
    here = residual(data)
    of = len(CAPTION) * here.sizes["unit"]
    if not config.whole:
        return judge.cannot("accuracy", text, Expected(min=float(of)), why_not(config))
    parts = [
        Part(
            f"{here.layer.values[i]}.{stage}.{key}",
            f"layer {here.layer.values[i]}: {words}",
            expected,
            share_of(here[key].sel(stage=stage).isel(unit=i), of=of),
        )
        for i in range(here.sizes["unit"])
        for (stage, key), (words, expected) in CAPTION.items()
    ]
    return judge.family("accuracy", text, parts)


def reached(judge: Judge, data: xr.Dataset, config: Turned) -> Claim:
    """Stage 3 comes to the accuracies of stage 1 within its epochs, in each layer."""
    here = residual(data)
    took = ", ".join(
        f"layer {layer}: {epochs:.0f} epochs{'' if there else ', not there'}"
        for layer, epochs, there in zip(
            here.layer.values, here.epochs.values, here.reached.values, strict=True
        )
    )
    text = (
        f"stage 3 reaches the accuracies of stage 1 in fewer than {config.epochs} epochs ({took})"
    )
    soon = (here.reached > 0) & (here.epochs < config.epochs)
    found = Certain(float(soon.mean()), "counted, of one training each", here.sizes["unit"])
    return judge(
        "reached", text, MOST, found, bar="ours: more than half of the layers, for 'usually'"
    )
