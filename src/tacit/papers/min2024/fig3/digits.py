"""What the neurons of parity nets point at (Section 5.2.1).

"There is no reason to expect that neurons in pReLU can learn each subclass (in this case, the individual digit)
and indeed they cannot." A neuron has learned a digit where its weights point at that digit's mean image (less the
mean of all, which the net subtracts): in the paper's synthetic nets that cosine is 1. Beside the digits there are
the two class means, even and odd, which are opposite once the mean of all is subtracted.
"""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
import xarray as xr
from matplotlib.axes import Axes

from tacit.base.estimate import Estimate, least, most
from tacit.lab import Claim, Expected, Judge
from tacit.measure import mean_of
from tacit.measure.averaging import cosines, means
from tacit.papers.min2024.images.nets import Nets, Pictures

LEARNED = 0.9
LEARNED_BAR = "ours: a digit is learned where a neuron is within cosine .9 of its mean; theory's neurons have 1"
WHERE = "Section 5.2.1, after the data and the training"


def towards_digits(nets: Nets, pictures: Pictures) -> dict[str, xr.DataArray]:
    """By p and seed: the largest cosine of a neuron with each digit's mean, and the share of neurons nearer to a
    digit's mean than to a class's."""
    x = pictures.x.cpu().double() - pictures.centre.double()
    kinds = pictures.kind.cpu().unique(return_inverse=True)
    digit, parity = means(x, kinds[1]), means(x, pictures.y.cpu())
    keys = sorted(nets)
    best, share = [], []
    for key in keys:
        w = nets[key].w.detach().cpu().double()
        to_digit, to_class = cosines(w, digit), cosines(w, parity)
        best.append(to_digit.amax(0))
        share.append(float((to_digit.amax(1) > to_class.amax(1)).double().mean()))
    ps, seeds = sorted({p for p, _ in keys}), sorted({seed for _, seed in keys})
    shape = (len(ps), len(seeds))
    coords = {"p": ps, "seed": seeds}
    return {
        "digit_cosine": xr.DataArray(
            torch.stack(best).reshape(*shape, -1).numpy(),
            dims=("p", "seed", "digit"),
            coords={**coords, "digit": kinds[0].numpy()},
        ),
        "at_digit": xr.DataArray(np.array(share).reshape(shape), dims=("p", "seed"), coords=coords),
    }


def digit_claims(data: xr.Dataset, judge: Judge) -> Iterator[Claim]:
    """That no net learns each digit, and how many neurons are nearest to one as p grows."""
    judge = judge.but(where=WHERE, bar=LEARNED_BAR)
    ps = sorted(map(float, data.p.values))
    least_learned = data.digit_cosine.min("digit")
    found = [mean_of(least_learned.sel(p=p).values, of=len(ps)) for p in ps]
    text = "neurons cannot learn each digit (the largest cosine with the mean of the digit that is learned "
    text += "least, at the p where it is largest)"
    yield judge("digits", text, Expected(max=LEARNED), most(found))
    if len(ps) > 1:
        text = (
            f"more neurons are nearest to a digit's mean at p = {ps[-1]:g} than at {ps[0]:g} (gain)"
        )
        gain = mean_of((data.at_digit.sel(p=ps[-1]) - data.at_digit.sel(p=ps[0])).values)
        yield judge("digits.share", text, Expected(min=0.0), gain, source="ours",
                    bar="ours: the sign; a larger p learns more distinct patterns, says the paper")  # fmt: skip
        mean = data.digit_cosine.mean("digit")
        steps = [(mean.sel(p=b) - mean.sel(p=a)).values for a, b in pairwise(ps)]
        text = "the larger p, the nearer neurons are to digits (least gain of the largest cosine, over digits)"
        closer = least(mean_of(step, of=len(steps)) for step in steps)
        yield judge("digits.cosine", text, Expected(min=0.0), closer, source="ours",
                    bar="ours: the sign; predicted after the runs of seed 0")  # fmt: skip


def digit_panel(axes: Axes, data: xr.Dataset) -> None:
    """Against p, over seeds: the share of neurons nearest to a digit, and the least and mean learned digit."""
    ps = sorted(map(float, data.p.values))
    rows = (
        (data.at_digit, "C2", "neurons nearest to a digit"),
        (data.digit_cosine.mean("digit"), "C0", "cosine, mean digit"),
        (data.digit_cosine.min("digit"), "C1", "cosine, least learned"),
    )
    for values, colour, label in rows:
        found: list[Estimate] = [mean_of(values.sel(p=p).values) for p in ps]
        ends = [e.spread if math.isfinite(e.spread) else 0.0 for e in found]
        axes.errorbar(ps, [e.value for e in found], ends, fmt="o-", color=colour, label=label)
    axes.axhline(LEARNED, color="0.3", linestyle="--", linewidth=1)
    axes.annotate(
        "learned", (ps[0], LEARNED), xytext=(0, 3), textcoords="offset points", fontsize="small"
    )
    axes.set(ylim=(0, 1.05), xlabel="$p$", title="neurons and digits")
    axes.set_xticks(ps, [f"{p:g}" for p in ps])
    axes.legend(loc="lower right", fontsize="small")
