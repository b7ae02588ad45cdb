"""The claims of Figure 2 (c, d)."""

import math
from functools import partial

import numpy as np
import xarray as xr

from tacit.lab import Bench, Claim, Expected

WHERE = "Section 6.1, Figure 2"
DIAGONAL = 0.5  # nearly diagonal: entries off the diagonal are at most this share of those on it
CLOSE = 0.02  # of a linear rule's accuracy
Z = 1.96
AFTER = {"raw": "", "centred": " (embeddings less their mean, which the paper does not do)"}


def claims(data: xr.Dataset, bench: Bench) -> tuple[Claim, ...]:
    """For raw embeddings, as in the paper, and for centred ones."""
    made: list[Claim] = []
    for reading in map(str, data.reading.values):
        here = data.sel(reading=reading)
        made += matrix_claims(here, reading, bench)
        made += accuracy_claims(here, reading, bench)
        made += robust_claims(here, reading, bench)
    return tuple(made)


def matrix_claims(data: xr.Dataset, reading: str, bench: Bench) -> list[Claim]:
    """Averaging and decoupling, as the text of Section 6.1 has them."""
    tell = partial(bench.judge, n=data.sizes["seed"])
    last = data.cosine.isel(T=-1)
    dims = ("seed", "feature", "weight")
    two, many = (last.sel(net=net).transpose(*dims).values for net in ("two", "many"))
    side = data.side.values
    own, apart = side[:, None] == side, ~np.eye(len(side), dtype=bool)
    off, on = np.where(apart, many, -np.inf), np.diagonal(many, axis1=1, axis2=2)
    tops = np.stack([off.max(1), off.max(2)])
    # a quotient says nothing where an entry on the diagonal is not positive
    least = on.min(1)
    ratio = np.divide(off.max((1, 2)), least, out=np.full_like(least, np.inf), where=least > 0)
    worst = int(on.min(0).argmin())
    a, b = np.unravel_index(np.where(apart, many.mean(0), -np.inf).argmax(), apart.shape)
    i, j = np.unravel_index(np.where(own, two.min(0), np.inf).argmin(), own.shape)
    return [
        tell(
            f"uniform.{reading}",
            "2 labels: every own-class cosine exceeds every other-class cosine (measured: the smallest less the "
            f"largest){AFTER[reading]}", WHERE + "c", Expected(min=0.0),
            float(two[:, own].min() - two[:, ~own].max()),
            because=f"weight {j + 1} has cosine {two[:, i, j].min():.2f} with class {i + 1} of its own side, on "
            "which its neurons are mostly silent",
        ),
        tell(
            f"diagonal.{reading}",
            "k labels: the largest entry of every row and column is on the diagonal (measured: the share of them)"
            f"{AFTER[reading]}", WHERE + "d", Expected(value=1.0), float((on > tops).mean()),
        ),
        tell(
            f"off.{reading}",
            "k labels: the matrix is nearly diagonal, in our reading no entry off the diagonal above half of the "
            f"least on it (measured: the ratio, inf where the least is not positive){AFTER[reading]}",
            WHERE + "d", Expected(max=DIAGONAL), float(ratio.max()),
            because=f"the weight of class {b + 1} sees class {a + 1} too: their embeddings are alike"
            if least.min() > 0
            else f"on the diagonal, class {worst + 1} has cosine {on[:, worst].min():.2f} with its own weight",
        ),
    ]  # fmt: skip


def accuracy_claims(data: xr.Dataset, reading: str, bench: Bench) -> list[Claim]:
    """That neither h = 3 nor the detour over k labels costs accuracy."""
    n = data.attrs["test_points"]
    each = data.right.sel(net="many").astype(float) - data.right.sel(net="two").astype(float)
    half = Z * float(each.mean("seed").std("image", ddof=1)) / math.sqrt(n)
    gap = data.class_accuracy - data.probe
    return [
        bench.judge(
            f"accuracy.{reading}",
            "k labels, read as two classes, are no less accurate than 2 labels (measured: the difference)"
            f"{AFTER[reading]}", "Section 6.1", Expected(min=0.0), float(each.mean()), spread=half,
            n=n,
        ),
        bench.judge(
            f"compromised.{reading}",
            "h neurons a class compromise no accuracy: in our reading, they are at most "
            f"{CLOSE:g} below logistic regression on the same embeddings in k classes (measured: the difference)"
            f"{AFTER[reading]}",
            "Section 6.1", Expected(min=0.0, tolerance=CLOSE), float(gap.mean()), n=n,
        ),
    ]  # fmt: skip


def robust_claims(data: xr.Dataset, reading: str, bench: Bench) -> list[Claim]:
    """Section 6.2 shows it for synthetic data and deep nets; here for the nets of Figure 2."""
    n = data.sizes["point"] * data.sizes["seed"]
    lower, upper = (float(data[end].sel(net="many").median()) for end in ("lower", "upper"))
    two = float(data.upper.sel(net="two").median())
    rows = (
        ("robust", "attacked", upper, ""),
        ("certified", "certified", lower,
         "the certificate of the k-label net is wide: it says neither yes nor no"
         if upper > two else ""),
    )  # fmt: skip
    return [
        bench.judge(
            f"{id}.{reading}",
            f"k labels are more robust than 2 labels in l2 (measured: the {how} median radius of the k-label net "
            f"over the attacked one of the 2-label net){AFTER[reading]}",
            "Section 6.2", Expected(min=1.0), found / two if two else math.nan, n=n,
            because=why,
        )
        for id, how, found, why in rows
    ]  # fmt: skip
