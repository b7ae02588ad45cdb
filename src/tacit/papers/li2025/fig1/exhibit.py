"""Figure 1: where sum mu = 0, f_FA is a hyperplane close to the centres, and f_FD stays away from them.

Distances from a centre to the boundaries, in units of sqrt(d), for K centres of pairwise cosine
c = -1/(K-1), m of them in the centre's own class, and b_j = -||mu_j||^2/2:

    f_FA    sqrt((1 + (m-1) c) / m), which is 1/sqrt(K-1) for m = K/2:
            f_FA = <S+, x>, as S- = -S+; <S+, mu> = (1 + (m-1) c) d and ||S+||^2 = m (1 + (m-1) c) d
    f_FD    1/2 where f = 0 breaks (the centre's neuron switched off),
            1/sqrt(2 (1+c)) where f must change sign (its neuron off and one opposite neuron on)

Figure 4 likewise: a hyperplane at height h under the points, and the 1-nearest-neighbour rule.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
import xarray as xr

from tacit.certify import nearest_radius, radius
from tacit.data import ClusterMixture
from tacit.lab import Bench, Claim, Expected, Outcome, judge
from tacit.nets import NearestNeighbour, average_net, decoupled_net, linear_rule
from tacit.papers.li2025.fig1.figure import draw as draw
from tacit.papers.li2025.fig1.geometry import (
    f_FA_distance,
    f_FD_distance,
    moves_to_boundary,
    pentagon,
    simplex_mixture,
)
from tacit.papers.li2025.fig1.settings import Picture

WHERE = "Section 3, Figure 1"
READINGS = {"ties": "f = 0 breaks", "strict": "f must change sign"}


def run(config: Picture, bench: Bench) -> Outcome:
    """Exact distances in the plane and on the simplices, and Figure 4's points."""
    plane, simplex = pentagon(), simplex_mixture(5, config.D).reduced()
    data = xr.merge(
        [
            five_clusters("pentagon", plane),
            five_clusters("simplex", simplex),
            bench.part("sweep", lambda: sweep(config)),
            bench.part("fig4", lambda: above_and_below(config, bench)),
        ]
    )
    claims = [
        linearity(config, bench),
        *caption_claims("pentagon", "regular pentagon in the plane", data),
        *caption_claims("simplex", f"five clusters on a simplex, d = {config.D}", data),
        *sweep_claims(data),
        *fig4_claims(data, config),
    ]
    return Outcome(data, tuple(claims))


def five_clusters(name: str, mixture: ClusterMixture) -> xr.Dataset:
    """Exact distances of the five centres over their norm: f_FA, and f_FD by both readings."""
    norm = float(mixture.centres[0].norm())
    distances = [radius(average_net(mixture), mixture.centres, mixture.labels).upper.numpy()]
    moves = [moves_to_boundary(mixture, ties_break=ties) for ties in (True, False)]
    distances += [np.linalg.norm(move, axis=1) for move in moves]
    found = xr.Dataset(
        {f"{name}_distance": (("boundary", "centre"), np.stack(distances) / norm)},
        coords={"boundary": ["f_FA", "f_FD, ties", "f_FD, strict"]},
    )
    if name == "pentagon":
        found["move"] = (("reading", "centre", "axis"), np.stack(moves))
    return found


def sweep(config: Picture) -> xr.Dataset:
    """Distances on simplices over sqrt(d) by K, at a centre of either class: f_FA exactly, f_FD as the
    interval from the certificate to the closed form's own move, which is tried."""
    rows = []
    for K in config.K:
        mixture = simplex_mixture(K, config.D).reduced()
        at = torch.tensor([0, K - 1])
        x, y = mixture.centres[at], mixture.labels[at]
        f_FD = decoupled_net(mixture)
        lower = [radius(f_FD, x, y, ties_break=ties).lower for ties in (True, False)]
        upper = [closed_form_move(mixture, at, ties_break=ties) for ties in (True, False)]
        f_FA = radius(average_net(mixture), x, y).upper
        rows.append(torch.stack([f_FA, f_FA, lower[0], upper[0], lower[1], upper[1]]).T)
    values = torch.stack(rows).numpy() / math.sqrt(config.D)
    return xr.Dataset(
        {"distance": (("K", "side", "boundary", "end"), values.reshape(-1, 2, 3, 2))},
        coords={
            "K": list(config.K),
            "side": ["positive", "negative"],
            "boundary": ["f_FA", "f_FD, ties", "f_FD, strict"],
            "end": ["lower", "upper"],
        },
    )


def closed_form_move(
    mixture: ClusterMixture, at: torch.Tensor, *, ties_break: bool
) -> torch.Tensor:
    """Lengths of the closed form's moves; inf where the move does not break the centre.

    Ties: -mu/2. Strictly: to u_own = u_opp = 0, just beyond, within span(mu_own, mu_opp).
    """
    own = mixture.centres[at]
    other = mixture.centres[at.flip(0)]
    if ties_break:
        move, beyond = -own / 2, 1.0
    else:
        cosine = float((own[0] @ other[0]) / own[0].square().sum())
        # the Gram matrix [[1, c], [c, 1]] times the weights is (-1/2, 1/2 - c)
        weights = np.linalg.solve([[1, cosine], [cosine, 1]], [-0.5, 0.5 - cosine])
        move, beyond = weights[0] * own + weights[1] * other, 1 + 1e-9
    score = mixture.labels[at] * decoupled_net(mixture)(own + beyond * move)
    broken = score <= 1e-9 if ties_break else score < 0
    return torch.where(broken, move.norm(dim=1), torch.inf)


def linearity(config: Picture, bench: Bench) -> Claim:
    """f_FA(x) = <S+, x> at random points, relative to the largest value seen."""
    worst = 0.0
    for mixture in (pentagon(), *(simplex_mixture(K, K) for K in config.K)):
        generator = bench.generator("linear", mixture.D)
        x = torch.randn(config.n, mixture.D, generator=generator, dtype=torch.float64)
        f = average_net(mixture)(x)
        # u = S+ - S- = 2 S+
        worst = max(worst, float((f - linear_rule(mixture)(x) / 2).abs().max() / f.abs().max()))
    return judge(
        "linear",
        "where the centres sum to zero f_FA is a linear classifier (measured: the relative deviation)",
        WHERE,
        Expected(max=1e-12),
        worst,
        n=config.n * (1 + len(config.K)),
        smoke=False,
    )


def caption_claims(name: str, setting: str, data: xr.Dataset) -> Iterator[Claim]:
    """The caption at every centre, and for the centre that is closest to its boundary."""
    distance = data[f"{name}_distance"]
    f_FA = distance.sel(boundary="f_FA").values
    for reading, meaning in READINGS.items():
        f_FD = distance.sel(boundary=f"f_FD, {reading}").values
        worst = int((f_FD / f_FA).argmin())
        yield judge(
            f"{name}.every.{reading}",
            f"{setting}: every centre is farther from f_FD's boundary than from f_FA's "
            f"(measured: the least ratio; {meaning})",
            WHERE,
            Expected(min=1.0),
            float(f_FD[worst] / f_FA[worst]),
            n=5,
            smoke=False,
            because=f"centre {worst + 1} is {f_FA[worst]:.3f} from f_FA's boundary and "
            f"{f_FD[worst]:.3f} from f_FD's, in units of ||mu||",
        )
    yield judge(
        f"{name}.least",
        f"{setting}: the centre closest to f_FD's boundary is farther than the one closest to f_FA's "
        "(measured: the ratio; f = 0 breaks)",
        WHERE,
        Expected(min=1.0),
        float(distance.sel(boundary="f_FD, ties").min() / f_FA.min()),
        n=5,
        smoke=False,
    )


def sweep_claims(data: xr.Dataset) -> Iterator[Claim]:
    """Closed forms at every K, and the caption's claim at every centre for K > 5."""
    found = data.distance
    K = found.K.values
    size = {"positive": (K + 1) // 2, "negative": K // 2}
    theory = np.array(
        [
            [f_FA_distance(int(size[str(s)][i]), int(k)) for s in found.side.values]
            for i, k in enumerate(K)
        ]
    )
    off = np.abs(found.sel(boundary="f_FA", end="upper").values / theory - 1).max()
    yield judge(
        "f_FA",
        "f_FA's boundary is sqrt((1 + (m-1) c)/m) sqrt(d) away, m clusters in the class, "
        "c = -1/(K-1) (measured: the relative deviation)",
        WHERE,
        Expected(max=1e-9),
        float(off),
        n=theory.size,
        smoke=False,
    )
    for reading, form in (("ties", "1/2"), ("strict", "1/sqrt(2 (1+c))")):
        f_FD = found.sel(boundary=f"f_FD, {reading}")
        exact = np.array([[f_FD_distance(int(k), reading)] for k in K])
        yield judge(
            f"f_FD.{reading}",
            f"f_FD is broken at {form} sqrt(d) ({READINGS[reading]}; measured: the relative "
            "deviation of the move that does it)",
            WHERE,
            Expected(max=1e-9),
            float(np.abs(f_FD.sel(end="upper").values / exact - 1).max()),
            n=theory.size,
            smoke=False,
        )
        large = f_FD.sel(end="lower") / found.sel(boundary="f_FA", end="upper")
        yield judge(
            f"simplex.large.{reading}",
            f"simplex of K > 5 clusters: every centre is farther from f_FD's boundary, certified "
            f"(measured: the least ratio; {READINGS[reading]})",
            WHERE,
            Expected(min=1.0),
            float(large.where(large.K > 5).min()),
            n=2 * int((K > 5).sum()),
            smoke=False,
        )


def above_and_below(config: Picture, bench: Bench) -> xr.Dataset:
    """Figure 4: unit vectors of the hyperplane, half of them lifted by h, half lowered; exact radii."""
    generator = bench.generator("fig4")
    n = 2 * config.points
    x = torch.randn(n, config.dim, generator=generator, dtype=torch.float64)
    x[:, -1] = 0
    x /= x.norm(dim=1, keepdim=True)
    y = torch.ones(n, dtype=torch.float64)
    y[config.points :] = -1
    x[:, -1] = config.h * y
    apart = torch.cdist(x[y > 0], x[y < 0]).min()
    nearest = nearest_radius(NearestNeighbour(x, y), x, y).upper
    return xr.Dataset({"nearest": ("point", nearest.numpy()), "apart": ((), float(apart))})


def fig4_claims(data: xr.Dataset, config: Picture) -> list[Claim]:
    """The hyperplane's radius is h at every point; 1-NN's is at least half the gap of the classes."""
    least = float(data.nearest.min())
    setting = f"Figure 4, {2 * config.points} points at height +-{config.h:g} in R^{config.dim}: "
    return [
        judge(
            "fig4.ratio",
            setting + "1-NN is more robust than the hyperplane (measured: its least radius over h)",
            "Section 7, Figure 4",
            Expected(min=1.0),
            least / config.h,
            n=2 * config.points,
            smoke=False,
        ),
        judge(
            "fig4.balls",
            setting + "the balls of half the classes' distance are classified right "
            "(measured: 1-NN's least radius over it)",
            "Section 7, Figure 4",
            Expected(min=1.0, tolerance=1e-9),
            2 * least / float(data.apart),
            n=2 * config.points,
            smoke=False,
        ),
    ]
