r"""Figure 10: the correlation of embeddings, and how far class means are from orthogonal.

    cos(z_i, z_j) of images i, j,      cos(mu_a, mu_b) of the class means mu_a = mean of z_i over class a

The theory asks for orthogonal class means of one norm (Assumption 3.2); Frei et al. 2024, as the paper quotes it
in Section 3, for |cos(mu_a, mu_b)| = O(1/k), here with the constant 1. Embeddings that come out of a ReLU are not
negative: all cosines of *raw* means are positive, and means are orthogonal only where they share no coordinate.
*Centred* means (less the mean of all training images) cannot be orthogonal either: those of k equal classes sum
to 0, and if they have one norm, their cosines are -1/(k-1) on average, as in a simplex. Both are measured.
"""

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from tacit.lab import Bench, Claim, Expected, Outcome
from tacit.papers._shared.embeddings import class_means, embeddings_of
from tacit.papers.li2025.fig2cd.settings import PAPERS, Embedded
from tacit.papers.li2025.fig10.figure import draw as draw
from tacit.papers.li2025.fig10.settings import Correlations

READINGS = ("raw", "centred")
WHERE = "Appendix E.2, Figure 10"
Z = 1.96


def run(config: Correlations, bench: Bench) -> Outcome:
    """The maps of raw and of centred embeddings."""
    bench.tell(substitute(config, bench))
    found = embeddings_of(config, bench).train
    kinds = range(len(found.classes))
    rows = torch.cat([(found.y == kind).nonzero().squeeze(1)[: config.each] for kind in kinds])
    label = found.y[rows]
    maps, means, norms = [], [], []
    for reading in READINGS:
        centre = found.x.double().mean(0) if reading == "centred" else 0.0
        mu = class_means(found.x, found.y) - centre
        maps.append(cosines_of(found.x[rows].double() - centre))
        means.append(cosines_of(mu))
        norms.append(mu.norm(dim=1))
    data = xr.Dataset(
        {
            "correlation": (("reading", "row", "column"), torch.stack(maps).float().numpy()),
            "of_means": (("reading", "feature", "other"), torch.stack(means).numpy()),
            "norm": (("reading", "feature"), torch.stack(norms).numpy()),
            "label": ("row", label.numpy()),
        },
        coords={"reading": list(READINGS), "feature": list(found.classes)},
    )
    return Outcome(data, claims(data, bench))


def substitute(config: Correlations | Embedded, bench: Bench) -> str | None:
    """What to tell where images and net are not the paper's."""
    if bench.smoke or (config.dataset, config.extractor) == ("cifar10", PAPERS):
        return None
    return (
        f"{config.named} in place of the paper's cifar10 by CLIP ViT-B-32: for that, --set "
        f"dataset=cifar10 --set extractor={PAPERS}"
    )


def cosines_of(x: Float[Tensor, "n d"]) -> Float[Tensor, "n n"]:
    """cos(x_i, x_j); a row of zeros (black pixels) has cosine 0 with all."""
    u = x / x.norm(dim=1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
    return u @ u.T


def block_means(data: xr.Dataset, reading: str) -> np.ndarray:
    """The mean cosine of the images of two classes, (k, k); of one class without the images themselves."""
    label, cosine = data.label.values, data.correlation.sel(reading=reading).values.copy()
    np.fill_diagonal(cosine, np.nan)
    kinds = np.unique(label)
    return np.array(
        [[np.nanmean(cosine[np.ix_(label == a, label == b)]) for b in kinds] for a in kinds]
    )


def gap_of(data: xr.Dataset, reading: str) -> tuple[float, float]:
    """Same-class mean cosine less that of different classes, and 1.96 standard errors by the jackknife.

    Pairs share images: leaving out one image at a time counts images, not pairs.
    """
    label, cosine = data.label.values, data.correlation.sel(reading=reading).values
    one = label[:, None] == label
    same = one & ~np.eye(len(label), dtype=bool)
    sums = [np.where(mask, cosine, 0.0).sum(1) for mask in (same, ~one)]
    counts = [mask.sum(1).astype(np.float64) for mask in (same, ~one)]
    means = [s.sum() / c.sum() for s, c in zip(sums, counts, strict=True)]
    # an image is in its row and in its column
    left = [(s.sum() - 2 * s) / (c.sum() - 2 * c) for s, c in zip(sums, counts, strict=True)]
    n, each = len(label), left[0] - left[1]
    error = np.sqrt((n - 1) / n * ((each - each.mean()) ** 2).sum())
    return float(means[0] - means[1]), float(Z * error)


def claims(data: xr.Dataset, bench: Bench) -> tuple[Claim, ...]:
    """Clusters, and the orthogonality that the figure's title speaks of."""
    made = []
    k, n = data.sizes["feature"], data.sizes["row"]
    for reading in READINGS:
        gap, half = gap_of(data, reading)
        blocks = block_means(data, reading)
        apart = ~np.eye(k, dtype=bool)
        closest = float((blocks.diagonal()[:, None] - blocks)[apart].min())
        largest = np.where(apart, abs(data.of_means.sel(reading=reading).values), 0.0)
        a, b = (data.feature.values[i] for i in np.unravel_index(largest.argmax(), largest.shape))
        made += [
            bench.judge(
                f"clustered.{reading}",
                f"{reading} embeddings: same-class correlation is significantly higher than that of different "
                "classes (measured: the difference of means, less its 95% half-width)",
                WHERE, Expected(min=0.0), gap - half, spread=half, n=n,
            ),
            bench.judge(
                f"blocks.{reading}",
                f"{reading} embeddings: images of every class correlate more with each other than with those of "
                "any other class (measured: the smallest difference of means)",
                WHERE, Expected(min=0.0), closest, n=n,
            ),
            bench.judge(
                f"orthogonal.{reading}",
                f"{reading} embeddings: |cos(mu_a, mu_b)| <= 1/k for all class means (measured: the largest)",
                "Section 3, Assumption 3.2; Figure 10",
                Expected(max=1 / k), float(largest.max()), n=k,
                because=f"the means of {a} and {b} have |cosine| {largest.max():.2f}: " + WHY[reading],
            ),
        ]  # fmt: skip
    return tuple(made)


WHY = {
    "raw": "embeddings share a large mean, and the clusters lie in a cone about it",
    "centred": "classes that look alike stay close, and means that sum to 0 cannot all be orthogonal",
}
