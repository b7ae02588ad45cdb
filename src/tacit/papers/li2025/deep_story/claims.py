"""The claims: what each row does against `two`, and whether that is what adversarial training does.

All bars were written before any net of the full size was trained.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.base.estimate import Certain, Estimate
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.lab.claims import Part
from tacit.measure.flags import raised_flags
from tacit.papers._shared.fits import listed
from tacit.papers.li2025.deep_story.effects import (
    change,
    clean_change,
    comparable,
    kin,
    lean,
    past_half,
    robust_gain,
    sparser,
)
from tacit.papers.li2025.deep_story.settings import PAPER, DeepStory
from tacit.papers.li2025.fig3b.claims import LESS
from tacit.papers.li2025.fig3b.settings import CIFAR10

NAMES = {
    "two": "2 labels",
    "head": "a PolyReLU head",
    "control": "the same head with ReLU",
    "throughout": "PolyReLU throughout",
    "ten": "10 labels",
    "both": "10 labels and a PolyReLU head",
    "discovered": "10 discovered labels",
    "adversarial": "adversarial training",
}
WHERE = "Beyond the papers"
SOLVED = 0.99
SIZES = "train", "side", "width", "epochs", "hard_epochs"
TOO_SMALL = (
    "small nets on small images do not show what full ones do (li2025.fig3c); the run of full size decides it "
    "(tacit run li2025.deep_story --scale paper --device cuda, about 25 minutes of one H200)"
)
ONCE = "one training of each kind says nothing of how trainings vary: --set repeats=3"
NOTHING = "no radius leaves one of the two nets some points and takes some: give others with --set radius="

more = Expected(min=0.0)


def regime_of(config: DeepStory) -> str:
    """What of the setting is not that of li2025's ResNet-18 on CIFAR-10."""
    times = f"{config.repeats} trainings" if config.repeats > 1 else "one training"
    epochs = f"{config.epochs} epochs clean, {config.hard_epochs} adversarial, {times} of each kind"
    if config.dataset != "cifar10":
        return f"other data: {config.dataset} where li2025 has CIFAR-10; {epochs}"
    off = [name for name in SIZES if getattr(config, name) != getattr(PAPER, name)]
    told = [f"{name} = {getattr(config, name)} ({getattr(PAPER, name)})" for name in off]
    told = [*told, "full size in brackets"] if off else []
    return "; ".join([f"shortened: {epochs} where li2025 has {CIFAR10.epochs}", *told])


def too_small(config: DeepStory) -> bool:
    """Whether a run on CIFAR-10 has fewer images, pixels, channels or epochs than the full one."""
    fewer = any(getattr(config, name) < getattr(PAPER, name) for name in ("width", "epochs"))
    return config.dataset == "cifar10" and (fewer or bool(config.side or config.train))


def claims(data: xr.Dataset, config: DeepStory, bench: Bench) -> Iterator[Claim]:
    """Question by question, row by row; then what holds for the measurements themselves."""
    judge = bench.claims(WHERE, source="ours", bar="ours: above 0", regime=regime_of(config))
    every = [str(row) for row in data.row.values]
    rows = [row for row in every if row not in ("two", "control")]  # a control promises nothing
    for question in (robustness, price, averaging, purity):
        for row in rows:
            yield question(judge, data, row, config)
    if {"head", "control"} <= set(every):
        yield power(judge, data, config)
    if "adversarial" in rows:
        for row in rows:
            if row != "adversarial":
                yield same_thing(judge, data, row, config)
    yield no_flag(judge, data)
    text = "Lasso problems that are solved to a duality gap of 1e-4 (the share)"
    share = Certain(float(data.solved.mean()), "proved by the dual", data.solved.size)
    bar = f"ours: {SOLVED:g}"
    yield judge("solved", text, Expected(min=SOLVED), share, source="check", bar=bar)


def told(
    judge: Judge,
    id: str,
    text: str,
    expected: Expected,
    found: Estimate | None,
    config: DeepStory,
    missing: str,
) -> Claim:
    """The claim, or why it cannot be judged."""
    if reason := unjudged(config) or (missing if found is None else ""):
        return judge.cannot(id, text, expected, reason)
    assert found is not None
    return judge(id, text, expected, found)


def unjudged(config: DeepStory) -> str:
    """Why no row of this run is judged: it is too small, or one training of each kind."""
    return TOO_SMALL if too_small(config) else ONCE if config.repeats == 1 else ""


def robustness(judge: Judge, data: xr.Dataset, row: str, config: DeepStory) -> Claim:
    """More robust than 2 labels."""
    radii = listed(comparable(data, row))
    text = f"{NAMES[row]}: robust accuracy less that of 2 labels, mean over l2 radii {radii or '-'}"
    if row == "ten":
        bar = "paper: higher robust test accuracy; ours: in the mean over radii"
        judge = judge.but(where="Section 6.2, Figure 3 (right)", source="words", bar=bar)
    if row == "discovered":
        rand = float(data.rand.sel(row=row).mean())
        text += f" (adjusted Rand index of its labels with the classes: {rand:.2f})"
    return told(judge, f"robust.{row}", text, more, robust_gain(data, row), config, NOTHING)


def power(judge: Judge, data: xr.Dataset, config: DeepStory) -> Claim:
    """What the head gains is its power's, not that of a further layer."""
    radii = listed(comparable(data, "head", "control"))
    text = f"{NAMES['head']}: robust accuracy less that of {NAMES['control']}, mean over l2 radii {radii or '-'}"
    return told(judge, "power", text, more, robust_gain(data, "head", "control"), config, NOTHING)


def price(judge: Judge, data: xr.Dataset, row: str, config: DeepStory) -> Claim:
    """Clean accuracy: kept by what trains on clean images, paid by adversarial training."""
    hard = row == "adversarial"
    expected = Expected(max=-LESS) if hard else Expected(min=-LESS)
    judge = judge.but(bar=f"ours: {'more than' if hard else 'at most'} one in a hundred is lost")
    text = f"{NAMES[row]}: clean accuracy of the binary task less that of 2 labels"
    return told(judge, f"clean.{row}", text, expected, clean_change(data, row), config, "")


def averaging(judge: Judge, data: xr.Dataset, row: str, config: DeepStory) -> Claim:
    """Neurons lean more to the classes within halves, and features keep these apart."""
    text = f"{NAMES[row]}: it averages less than 2 labels do"
    if reason := unjudged(config):
        return judge.cannot(f"averages.{row}", text, Expected(min=2.0), reason)
    parts = [
        Part("neurons", "cosine with a class less that with a half, more than 2 labels have", more,
             change(lean(data), row, of=2)),
        Part("features", "variance within halves that is between classes, more than 2 labels have", more,
             change(data.apart, row, of=2)),
    ]  # fmt: skip
    return judge.family(f"averages.{row}", text, parts)


def purity(judge: Judge, data: xr.Dataset, row: str, config: DeepStory) -> Claim:
    """Images are sparser in its first filters."""
    text = f"{NAMES[row]}: share of coefficients that images need in its first filters, less than 2 labels"
    judge = judge.but(bar=f"ours: above 0, at a relative squared error of {config.error:g}")
    missing = (
        "fewer than two images come down to the error in all nets: raise error, or lower least"
    )
    return told(judge, f"purer.{row}", text, more, sparser(data, row), config, missing)


def same_thing(judge: Judge, data: xr.Dataset, row: str, config: DeepStory) -> Claim:
    """Half of the gain of adversarial training, and first filters nearer to its own."""
    text = f"{NAMES[row]}: it does what adversarial training does"
    judge = judge.but(bar="ours: half of its robust gain, and first filters nearer to its own")
    gained = past_half(data, row, of=2)
    if gained is None or unjudged(config):
        reason = unjudged(config) or NOTHING
        return judge.cannot(f"same.{row}", text, Expected(min=2.0), reason)
    parts = [
        Part("gain", "robust gain less half of that of adversarial training", more, gained),
        Part("filters", "largest |cos| with its first filters, more than 2 labels have", more,
             change(kin(data), row, of=2)),
    ]  # fmt: skip
    return judge.family(f"same.{row}", text, parts)


def no_flag(judge: Judge, data: xr.Dataset) -> Claim:
    """Nothing speaks for masked gradients."""
    names = [str(name) for name in data.flag.values]
    found = []
    for row in data.row.values:
        worst = data.flags.sel(row=row).max(("seed", "at")).values
        raised = raised_flags(dict(zip(names, map(float, worst), strict=True)))
        found += [f"{row}: {flag.name} ({flag.value:.1%})" for flag in raised]
    text = "the strict attack raises no flag of masked gradients (kinds of flags, over rows)"
    count = Certain(len(found), "counted on these images", int(np.prod(data.flags.shape)))
    bar = "derived: each flag has its limit in tacit.measure.flags"
    because = "; ".join(found)
    return judge(
        "flags", text, Expected(value=0.0), count, source="check", bar=bar, because=because
    )
