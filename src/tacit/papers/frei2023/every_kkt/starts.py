"""Means with products of a given size, and the many starts from which KKT points are searched."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.data import ClusterMixture, Samples, cluster_mixture
from tacit.nets import TwoLayerNet
from tacit.papers._shared.assumptions import noise_term
from tacit.papers.frei2023._shared.trained import start
from tacit.papers.frei2023.every_kkt.settings import LARGE, SMALL, SPARE, EveryKkt

Pattern = tuple[Float[Tensor, " h"], Bool[Tensor, "n h"]]  # signs, and where each neuron is on
POINTWISE = 3  # neurons a sign that are on at random points
HEARD = 1e-6  # the share of all mass below which a neuron of a flow is left out


def mixture_of(kind: str, config: EveryKkt, generator: torch.Generator) -> ClusterMixture:
    """K means of norm sqrt(D) with products 0 or +-p: coordinates by Cholesky's factor of the products."""
    d, K, K1 = config.D, config.K, config.K // 2
    p = SPARE * admitted_overlap(d, K, config.sigma)
    side = torch.arange(K) < K1
    signs = -(side.unsqueeze(1) == side).double()
    if kind == "mixed":
        coin = torch.randint(2, (K, K), generator=generator).double().mul(2).sub(1).tril(-1)
        signs = coin + coin.T
    elif kind == "orthogonal":
        signs = torch.zeros(K, K, dtype=torch.float64)
    gram = (p * signs).fill_diagonal_(float(d))
    centres = torch.zeros(K, d, dtype=torch.float64)
    centres[:, :K] = torch.linalg.cholesky(gram)
    return cluster_mixture(centres, K1, config.sigma)


def admitted_overlap(d: int, K: int, sigma: float) -> float:
    """The largest p that Assumption 2.2 admits: (d - Delta + 1)/(10 K) - Delta - 1, or 0."""
    delta = noise_term(d, sigma)
    return max((d - delta + 1) / (10 * K) - delta - 1, 0.0)


def patterns(
    samples: Samples, mixture: ClusterMixture, draws: int, generator: torch.Generator
) -> dict[str, Pattern]:
    """Which neurons are on where, for every start of the solver: groups of clusters, or points."""
    classes = [torch.where(mixture.labels == side)[0].tolist() for side in (1, -1)]
    found = {
        "one a sign": on_clusters(samples, [[mine] for mine in classes]),
        "one a cluster": on_clusters(samples, [[[q] for q in mine] for mine in classes]),
    }
    for i in range(draws):
        groups = [random_groups(mine, generator) for mine in classes]
        found[f"groups {i + 1}"] = on_clusters(samples, groups)
        subsets = [random_subsets(mine, generator) for mine in classes]
        found[f"overlapping {i + 1}"] = on_clusters(samples, subsets)
        found[f"points {i + 1}"] = on_points(samples, generator)
    return found


def random_groups(clusters: list[int], generator: torch.Generator) -> list[list[int]]:
    """Each cluster in one of as many groups as there are clusters, by chance; those that are not empty."""
    which = torch.randint(len(clusters), (len(clusters),), generator=generator).tolist()
    pairs = list(zip(clusters, which, strict=True))
    return [[q for q, g in pairs if g == group] for group in sorted(set(which))]


def random_subsets(clusters: list[int], generator: torch.Generator) -> list[list[int]]:
    """For every cluster a neuron that is on there, and at each other one with probability 1/2."""
    coins = torch.rand(len(clusters), len(clusters), generator=generator) < 0.5
    return [
        [q for q, coin in zip(clusters, row, strict=True) if coin or q == mine]
        for mine, row in zip(clusters, coins.tolist(), strict=True)
    ]


def on_clusters(samples: Samples, groups: list[list[list[int]]]) -> Pattern:
    """Neurons that are on at the points of their clusters: positive ones first."""
    columns = [torch.isin(samples.z, torch.tensor(group)) for side in groups for group in side]
    sign = [side for side, mine in zip((1.0, -1.0), groups, strict=True) for _ in mine]
    return torch.tensor(sign), torch.stack(columns, 1)


def on_points(samples: Samples, generator: torch.Generator) -> Pattern:
    """Neurons that are on at every point with probability 1/2, and one of each sign at those that have none."""
    on = torch.rand(len(samples.y), 2 * POINTWISE, generator=generator) < 0.5
    sign = torch.ones(2 * POINTWISE)
    sign[POINTWISE:] = -1
    own = samples.y.unsqueeze(1) == sign
    bare = ~(on & own).any(1)
    on[bare, 0] = on[bare, POINTWISE] = True
    return sign, on


def flow_start(
    name: str, mixture: ClusterMixture, config: EveryKkt, generator: torch.Generator
) -> TwoLayerNet:
    """Small, NTK-like or large weights; one large layer; one negative neuron; a small neuron at each mean."""
    d, h = mixture.D, config.h
    if name == "sparse":
        w = SMALL * mixture.centres / math.sqrt(d)
        return TwoLayerNet(w, SMALL * mixture.labels, torch.zeros_like(mixture.labels))
    net = start(d, h, {"NTK-like": 0.0, "large": LARGE}.get(name, SMALL), generator)
    if name == "first layer":
        return TwoLayerNet(net.w * (LARGE / SMALL), net.v, net.b)
    if name == "second layer":
        return TwoLayerNet(net.w, net.v * (LARGE / SMALL), net.b)
    if name == "one sign":
        v = net.v.abs()
        v[0] = -v[0]
        return TwoLayerNet(net.w, v, net.b)
    return net


def pattern_of(net: TwoLayerNet, samples: Samples) -> Pattern | None:
    """Where the neurons of a flow are on; those of one sign and one pattern count once. None: a point has none.

    Two neurons of one sign and one pattern add up to one without becoming longer (Pilanci & Ergen 2020).
    """
    net = net.double()
    z = samples.x @ net.w.T if net.b is None else samples.x @ net.w.T + net.b
    mass = net.v.abs() * net.w.norm(dim=1)
    heard = mass > HEARD * float(mass.sum())
    sign = net.v[heard].sign()
    on = (z[:, heard] > 0) & (samples.y.unsqueeze(1) == sign)
    if not bool(on.any(1).all()):
        return None
    both = torch.cat([sign.unsqueeze(0), on.double()])[:, on.any(0)].unique(dim=1)
    return both[0], both[1:] > 0
