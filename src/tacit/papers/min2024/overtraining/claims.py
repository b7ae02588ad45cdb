"""The claims of `overtraining`: what is lost after the best epoch, and whether an indicator would have told.

Every choice (a best epoch, an indicator) is made on the first half of the trainings and judged on the second.
Bars were written down before the first run of the exhibit; one scratch training had shown less robust accuracy
after 150 epochs than after 51 on digits, at p = 1 as at p = 4.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.base.estimate import Certain, Estimate, most
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.papers._shared.crossed import Floats, crossed
from tacit.papers.min2024.images.settings import regime_of
from tacit.papers.min2024.overtraining.looks import INDICATORS
from tacit.papers.min2024.overtraining.settings import Overtraining

LITTLE = 0.02  # of robust accuracy: the tolerance of all claims here
SHARE = (0.0, 1.0)
MNIST_TRAIN = 50_000  # images that the released code trains on
SAID = {
    "loss": "the least cross-entropy of held-out points",
    "accuracy": "the largest clean accuracy of held-out points",
    "distance": "the largest median of margin over gradient",
    "margin": "the largest median margin over the net's size",
}


def claims(
    data: xr.Dataset, config: Overtraining, bench: Bench, ground: str = ""
) -> Iterator[Claim]:
    """Of the largest p, of the smallest, of both, of proofs, and of indicators; `ground` begins their ids."""
    judge = bench.claims(
        "Section 5.2.1 and Appendix B, re-examined", source="ours", bar="ours: more is more",
        regime=regime_here(config),
    )  # fmt: skip
    on = "MNIST: " if ground else ""
    N = int(data.attrs["test_points"])
    first, last = float(data.p[0]), float(data.p[-1])
    ends = {p: lost(data, p) for p in (first, last)}
    epochs = {p: best_epoch(choosing(data), p) for p in (first, last)}
    text = f"{on}p = {last:g} loses robust accuracy after epoch {epochs[last]}, the best of other trainings"
    yield judge(f"{ground}loses", text, Expected(min=0.0), crossed(ends[last], N))
    text = f"{on}p = {first:g} loses at most {LITTLE:g} after its epoch {epochs[first]}"
    bar = "ours: two points in a hundred"
    yield judge(f"{ground}keeps", text, Expected(max=LITTLE), crossed(ends[first], N), bar=bar)
    text = f"{on}p = {last:g} loses more than p = {first:g} (the difference)"
    yield judge(f"{ground}more", text, Expected(min=0.0), crossed(ends[last] - ends[first], N))
    yield from proofs(data, last, epochs[last], judge, N, ground)
    name = indicator(choosing(data))
    text = f"{on}{SAID[name]}, the best indicator of other trainings, stops within {LITTLE:g} of the best"
    text += " robust accuracy at any epoch (what is lost, at the worst p)"
    yield judge(
        f"{ground}indicator", text, Expected(max=LITTLE), foretold(judging(data), name, N), bar=bar
    )


def regime_here(config: Overtraining) -> str:
    """`regime`: more epochs than the paper's are the subject here; fewer images are not."""
    n = config.mnist_train
    if config.dataset != "mnist" or n >= MNIST_TRAIN:
        return regime_of(config, classes=10)
    return f"shortened: {n} of MNIST's training images, width {config.width} (500)"


def no_mnist(reason: str, bench: Bench) -> Claim:
    """What is said where its images are not here."""
    judge = bench.claims(
        "Section 5.2.1 and Appendix B, re-examined", source="ours", bar="ours: more is more",
        regime="inside: MNIST",
    )  # fmt: skip
    text = "MNIST: the largest p loses robust accuracy after the best epoch of other trainings"
    return judge.cannot("mnist.loses", text, Expected(min=0.0), reason)


def choosing(data: xr.Dataset) -> xr.Dataset:
    """The first half of the trainings."""
    return data.isel(seed=slice(None, data.sizes["seed"] // 2))


def judging(data: xr.Dataset) -> xr.Dataset:
    """The others."""
    return data.isel(seed=slice(data.sizes["seed"] // 2, None))


def robust(data: xr.Dataset) -> xr.DataArray:
    """Robust accuracy, mean over norms, points and trainings: (p, epoch)."""
    return data.kept.mean(("row", "point", "seed"))


def best_epoch(data: xr.Dataset, p: float) -> int:
    """With the largest robust accuracy of these trainings; the last epoch is left out."""
    return int(robust(data).sel(p=p).isel(epoch=slice(None, -1)).idxmax("epoch"))


def lost(data: xr.Dataset, p: float) -> Floats:
    """(seed, point): robust at the best epoch of the choosing trainings less at the end, in the judging ones."""
    here = judging(data).kept.sel(p=p).mean("row")
    best = here.sel(epoch=best_epoch(choosing(data), p))
    values: Floats = (best - here.isel(epoch=-1)).transpose("seed", "point").values
    return values


def proofs(
    data: xr.Dataset, p: float, epoch: int, judge: Judge, N: int, ground: str
) -> Iterator[Claim]:
    """The same loss in what is proved; and no proof is broken."""
    on = "MNIST: " if ground else ""
    here = judging(data).proved.sel(p=p)
    fall = (here.sel(epoch=epoch) - here.isel(epoch=-1)).transpose("seed", "sure").values
    text = (
        f"{on}p = {p:g}: fewer points are proved at the end than at epoch {epoch} (the share lost)"
    )
    yield judge(f"{ground}proved", text, Expected(min=0.0), crossed(fall.astype(np.float64), N))
    both = int(((data.proved == 1) & (data.left == 0)).sum())
    fact = Certain(float(both), "a proof excludes an attack", data.proved.size)
    text = f"{on}no point that is proved was broken at that radius (points)"
    yield judge(
        f"{ground}sound",
        text,
        Expected(value=0.0),
        fact,
        source="check",
        bar="derived: a proof",
        any_size=True,
    )


def stopped(data: xr.Dataset, name: str) -> xr.DataArray:
    """The epoch at which each training would stop by an indicator, (p, seed)."""
    values = data[name]
    return values.idxmin("epoch") if INDICATORS[name] == "least" else values.idxmax("epoch")


def regret(data: xr.Dataset, name: str) -> xr.DataArray:
    """(p, seed, point): kept at the best epoch of these trainings, less at each one's own by the indicator."""
    kept = data.kept.mean("row")
    best = robust(data).idxmax("epoch")
    found = kept.sel(epoch=best) - kept.sel(epoch=stopped(data, name))
    return found.drop_vars("epoch", errors="ignore").transpose("p", "seed", "point")


def indicator(data: xr.Dataset) -> str:
    """The one that loses least at its worst p."""
    return min(INDICATORS, key=lambda name: float(regret(data, name).mean(("seed", "point")).max()))


def foretold(data: xr.Dataset, name: str, N: int) -> Estimate:
    """What is lost by it at the worst p."""
    each = regret(data, name).values
    return most(crossed(one, N, of=len(each)) for one in each)
