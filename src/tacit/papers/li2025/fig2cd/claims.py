"""The claims of Figure 2 (c, d)."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import xarray as xr

from tacit.lab import Claim, Expected, Judge
from tacit.measure import Estimate, mean_of, proportion

DIAGONAL = 0.5  # nearly diagonal: no entry off the diagonal is above this share of the least on it
CLOSE = 0.02  # of a linear rule's accuracy
OVER = "starts"


def claims(data: xr.Dataset, judge: Judge) -> Iterator[Claim]:
    """For raw embeddings, as in the paper, and for centred ones, which are ours."""
    for reading in map(str, data.reading.values):
        mine = judge if reading == "raw" else judge.but(source="ours")
        yield from matrix_claims(data.sel(reading=reading), reading, mine)
        yield from other_claims(data.sel(reading=reading), reading, mine)


def matrix_claims(data: xr.Dataset, reading: str, judge: Judge) -> Iterator[Claim]:
    """Averaging and decoupling, as the text of Section 6.1 has them."""
    last = data.cosine.isel(T=-1).transpose("net", "seed", "feature", "weight")
    two, many = (last.sel(net=net).values for net in ("two", "many"))
    own = data.side.values[:, None] == data.side.values
    i, j = np.unravel_index(np.where(own, two.mean(0), np.inf).argmin(), own.shape)
    because = (
        f"weight {j + 1} has cosine {two[:, i, j].mean():.2f} with class {i + 1}, of its own side"
    )
    text = f"{reading}, 2 labels: each own-class cosine exceeds each other-class one (smallest less largest)"
    gap = mean_of(two[:, own].min(1) - two[:, ~own].max(1), over=OVER)
    yield judge(f"uniform.{reading}", text, Expected(min=0.0), gap, because=because)

    apart = ~np.eye(len(own), dtype=bool)
    least = np.diagonal(many, axis1=1, axis2=2).min(1)
    a, b = np.unravel_index(np.where(apart, many.mean(0), -np.inf).argmax(), apart.shape)
    because = (
        f"weight {b + 1} has cosine {many[:, a, b].mean():.2f} with class {a + 1}; on the diagonal "
    )
    because += f"the least is {least.mean():.2f}"
    text = f"{reading}, k labels: nearly diagonal (the largest entry off the diagonal less half the least on it)"
    excess = mean_of(many[:, apart].max(1) - DIAGONAL * least, over=OVER)
    bar = "ours: nearly diagonal is half at most"
    yield judge(f"off.{reading}", text, Expected(max=0.0), excess, because=because, bar=bar)


def other_claims(data: xr.Dataset, reading: str, judge: Judge) -> Iterator[Claim]:
    """That h = 3 costs no accuracy, and that decoupling makes robust here, too."""
    text = f"{reading}: h neurons a class compromise no accuracy (that in k classes, less logistic regression's)"
    each = (data.class_right.astype(float) - data.probe_right.astype(float)).mean("seed")
    bar = f"ours: no more than {CLOSE:g} below a linear rule"
    yield judge(
        f"compromised.{reading}", text, Expected(min=-CLOSE), mean_of(each, over="images"), bar=bar
    )
    text = f"{reading}: share of points that k labels make more robust than 2 labels, l2, certified to attacked"
    found, where = more_robust(data), "Section 6.2, which has other nets"
    most_judge = judge.but(where=where, source="ours", bar="ours: most of the points")
    claim = most_judge(f"robust.{reading}", text, Expected(min=0.5), found)
    wide = f"[{found.low:.2f}, {found.high:.2f}] is from a wide certificate to an attack, whatever the points"
    yield replace(claim, reason=wide) if claim.verdict == "undecided" else claim


def more_robust(data: xr.Dataset) -> Estimate:
    """Of the points, by their mean radius over the starts: those certified to be so, up to those not refuted."""
    lower, upper = (data[end].mean("seed") for end in ("lower", "upper"))
    surely = int((lower.sel(net="many") > upper.sel(net="two")).sum())
    maybe = int((upper.sel(net="many") > lower.sel(net="two")).sum())
    n = data.sizes["point"]
    return replace(proportion(maybe, n), low=proportion(surely, n).low)
