"""The claims of Figure 2 (c, d)."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.base.estimate import Estimate, between
from tacit.lab import Claim, Expected, Judge
from tacit.measure import mean_of
from tacit.papers._shared.crossed import crossed

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
    each = data.class_right.astype(float) - data.probe_right.astype(float)
    bar = f"ours: no more than {CLOSE:g} below a linear rule"
    found = crossed(each.transpose("seed", "image").values)
    yield judge(f"compromised.{reading}", text, Expected(min=-CLOSE), found, bar=bar)
    text = f"{reading}: share of points that k labels make more robust than 2 labels, l2, certified to attacked"
    where, bar = "Section 6.2, which has other nets", "ours: most of the points"
    our_judge = judge.but(where=where, source="ours", bar=bar)
    yield our_judge(f"robust.{reading}", text, Expected(min=0.5), more_robust(data))


def more_robust(data: xr.Dataset) -> Estimate:
    """Of the points, for each start: those certified to be so, up to those not refuted."""
    lower, upper = (data[end].transpose("net", "seed", "point") for end in ("lower", "upper"))
    surely, maybe = (
        a.sel(net="many") > b.sel(net="two") for a, b in ((lower, upper), (upper, lower))
    )
    return between(*(crossed(e.values, ends=(0.0, 1.0)) for e in (surely, maybe)))
