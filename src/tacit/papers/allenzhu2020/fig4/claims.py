"""The claims of Figure 4."""

from collections.abc import Iterator

import xarray as xr

from tacit.base.estimate import Certain
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of
from tacit.papers.allenzhu2020.deep.claims import share_of
from tacit.papers.allenzhu2020.deep.settings import regime_of
from tacit.papers.allenzhu2020.fig4.settings import Rebuilt
from tacit.papers.allenzhu2020.fig12.claims import SOLVED

PRINTED = 0.0405
RECOGNISED = 0.8
NOT_HERE = (
    "the number is of AlexNet with 64 filters on all of CIFAR-10, which this is not: run --scale paper --device "
    "cuda, an estimated 5 minutes of one H200"
)


def claims(data: xr.Dataset, config: Rebuilt, bench: Bench) -> Iterator[Claim]:
    """As sparse as printed; still recognised; solved."""
    at = f"a relative squared error of {config.error:g}"
    bar = f"paper: 4.05% or less, at an error that it does not print; here at {at}"
    regime = regime_of(config)
    judge = bench.claims("Section 3, Figure 4", source="number", bar=bar, regime=regime)
    yield sparse(data, config, judge)
    text = "images rebuilt from these features that the robust net still has right (the share)"
    bar = f"ours: {RECOGNISED:g} of images that it has right before"
    found = share_of(data.kept)
    yield judge("recognised", text, Expected(min=RECOGNISED), found, source="ours", bar=bar)
    text = "Lasso problems that are solved to a duality gap of 1e-4 (the share)"
    share = Certain(float(data.solved.mean()), "proved by the dual", data.solved.size)
    bar = f"ours: {SOLVED:g}"
    yield judge("solved", text, Expected(min=SOLVED), share, source="check", bar=bar)


def sparse(data: xr.Dataset, config: Rebuilt, judge: Judge) -> Claim:
    """The mean over images, all of which have to come down to the error."""
    mean, psnr = (float(data[name].mean()) for name in ("sparsity", "psnr"))
    text = "the mean share of AlexNet's robust features that an image is made of "
    text += f"({100 * mean:.2f}% at a PSNR of {psnr:.1f} dB)"
    most = Expected(max=PRINTED)
    missed = int((data.reached == 0).sum())
    if missed:
        reason = (
            f"{missed} of {data.reached.size} images do not come down to the error: lower least="
        )
        return judge.cannot("sparse", text, most, reason)
    if not (config.whole or judge.smoke):
        return judge.cannot("sparse", text, most, NOT_HERE)
    return judge("sparse", text, most, mean_of(data.sparsity.values, over="images"))
