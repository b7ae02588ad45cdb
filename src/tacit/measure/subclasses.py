r"""Subclasses that nobody named: spherical k-means within each class (Dhillon & Modha 2001).

Rows are scaled to length 1; a point belongs to the centre of largest cosine, a centre is the normalised sum of
its points. The number of subclasses of a class is given, or chosen by the data: the k in 2..10 of the largest
mean silhouette (cosine distance); a class whose largest is below `DISTINCT` is left whole.

**When it finds them.** Clusters with orthogonal centres of one norm r and noise of norm sigma r: two points of
one cluster have cosine 1/(1 + sigma^2), of two clusters 0, either up to about 1/sqrt(D). So a = 1 - 1/(1 +
sigma^2) and b = 1 in the silhouette (b - a)/max(a, b): it is 1/(1 + sigma^2) for the clusters themselves,
1/(g (1 + sigma^2)) at a point of g merged ones, about 0 at a point of a split one. The true count has the largest
mean, and it passes `DISTINCT` up to sigma = 3. Too small a count merges evenly: g merged clusters have cosine
1/sqrt(g) with their common direction, and sum_groups g/sqrt(g) is concave in the sizes.

**When it fails.** Above that noise a class is left whole, although k-means with the right count may still find
its clusters; more than `MOST` subclasses are merged; rare ones weigh little in the mean; centres at a small
angle look like one; what differs in length alone is not told apart; in few dimensions silhouettes are high
without clusters too, so what is found there says little.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from tacit.base.checks import check_finite
from tacit.base.linalg import unit_rows
from tacit.base.shapes import Index, Labels, Rows
from tacit.errors import CallError

MOST = 10  # subclasses of a class
DISTINCT = 0.1  # mean silhouette below which a class counts as one cluster
POINTS = 1000  # of a class, that the choice of k looks at
RESTARTS = 4
ROUNDS = 50


@dataclass(frozen=True)
class Subclasses:
    """The subclass z (n,) of each point, 0..k-1, and the class labels (k,) of the subclasses."""

    z: Index
    labels: Shaped[Tensor, " k"]


def discover(
    x: Rows, y: Labels, generator: torch.Generator, count: int | None = None
) -> Subclasses:
    """Subclasses within the classes y, numbered through all classes: labels to train a multi-class net on.

    `count` subclasses in each class (fewer where a class has fewer points), or as many as the data say.
    """
    within = find_subclasses(x, y, generator, count)
    classes, owner = y.unique(return_inverse=True)
    pairs, z = torch.stack([owner, within], 1).unique(dim=0, return_inverse=True)
    return Subclasses(z, classes[pairs[:, 0]])


def find_subclasses(
    x: Rows, y: Labels, generator: torch.Generator, count: int | None = None
) -> Index:
    """A number for each point, 0..k-1 within its class; k is `count`, or chosen by the data."""
    if count is not None and count < 1:
        raise CallError(f"count={count}: a class has at least one subclass")
    check_finite("x", x)
    found = torch.zeros(len(x), dtype=torch.long)
    for label in y.unique():
        own = (y == label).nonzero().flatten()
        rows = in_few_dimensions(unit_rows(x[own])[0])
        few = rows[torch.randperm(len(own), generator=generator)[:POINTS]]
        centres = (
            best_centres(few, generator)
            if count is None
            else spherical_kmeans(few, min(count, len(few)), generator)
        )
        if centres is not None:
            found[own] = (rows @ centres.T).argmax(1)
    return found


def in_few_dimensions(x: Rows) -> Float[Tensor, "n r"]:
    """The rows in coordinates of their span, where that is smaller: all inner products stay."""
    return x if x.shape[1] <= x.shape[0] else torch.linalg.qr(x.T).R.T


def best_centres(x: Rows, generator: torch.Generator) -> Float[Tensor, "k D"] | None:
    """The centres of the best k by silhouette, or None where the rows are one cluster."""
    best, found = DISTINCT, None
    for k in range(2, min(MOST, len(x) - 1) + 1):
        centres = spherical_kmeans(x, k, generator)
        score = silhouette(x, (x @ centres.T).argmax(1))
        if score > best:
            best, found = score, centres
    return found


def spherical_kmeans(x: Rows, k: int, generator: torch.Generator) -> Float[Tensor, "k D"]:
    """Unit centres with the largest sum of cosines over a few restarts, for unit rows x."""
    best, found = -torch.inf, x[:k]
    for _ in range(RESTARTS):
        centres = spread_start(x, k, generator)
        for _ in range(ROUNDS):
            owner = (x @ centres.T).argmax(1)
            sums = torch.zeros_like(centres).index_add(0, owner, x)
            # a centre that lost all its points stays where it is
            moved = torch.where(sums.norm(dim=1, keepdim=True) > 0, unit_rows(sums)[0], centres)
            if torch.equal(moved, centres):
                break
            centres = moved
        total = float((x @ centres.T).amax(1).sum())
        if total > best:
            best, found = total, centres
    return found


def spread_start(x: Rows, k: int, generator: torch.Generator) -> Float[Tensor, "k D"]:
    """k rows, each drawn with probability in proportion to its distance 1 - cosine from those before."""
    chosen = [int(torch.randint(len(x), (1,), generator=generator))]
    far = torch.full((len(x),), torch.inf, dtype=x.dtype)
    while len(chosen) < k:
        far = torch.minimum(far, (1 - x @ x[chosen[-1]]).clamp_min(0))
        weights = far if float(far.sum()) > 0 else torch.ones_like(far)
        chosen.append(int(torch.multinomial(weights, 1, generator=generator)))
    return x[chosen]


def silhouette(x: Rows, owner: Index) -> float:
    """The mean of (b - a) / max(a, b) (Rousseeuw 1987), unit rows x, distance 1 - cosine.

    a is a point's mean distance to the others of its cluster, b to the nearest other cluster; alone it counts 0.
    Mean distances need no pairs: the mean of 1 - <x, z> over z is 1 - <x, mean of z>.
    """
    k = int(owner.max()) + 1
    member = torch.nn.functional.one_hot(owner, k).to(x.dtype)
    size = member.sum(0)
    apart = (size - (x @ (member.T @ x).T)).clamp_min(0)  # sums of distances, (n, k)
    own = (member * apart).sum(1) / (size[owner] - 1).clamp_min(1)
    other = (apart / size.clamp_min(1)).masked_fill((member > 0) | (size == 0), torch.inf).amin(1)
    width = torch.maximum(own, other)
    each = torch.where((size[owner] > 1) & (width > 0), (other - own) / width, 0.0)
    return float(each.nan_to_num(0.0).mean())
