"""Figure 1: where sum mu = 0, f_FA is a hyperplane close to the centres, and f_FD stays away from them.

Distances from a centre to the boundaries, in units of sqrt(d), for K centres of pairwise cosine
c = -1/(K-1), m of them in the centre's own class, and b_j = -||mu_j||^2/2:

    f_FA    sqrt((1 + (m-1) c) / m), which is 1/sqrt(K-1) for m = K/2:
            f_FA = <S+, x>, as S- = -S+; <S+, mu> = (1 + (m-1) c) d and ||S+||^2 = m (1 + (m-1) c) d
    f_FD    1/2 where f = 0 breaks (the centre's neuron switched off): a positive centre, as sgn(0) = -1;
            1/sqrt(2 (1+c)) where f must be > 0 (its neuron off, one opposite neuron on): a negative centre

At K = 5 the ratios are 1.22 and 1.33. The drawn plane is, in the caption's words, only a schematic illustration.

Figure 4 is drawn too. Its points lie h above and below a hyperplane: opposite ones are at least 2h apart, and the
1-nearest-neighbour rule keeps at least the hyperplane's h at each of them, which leaves nothing to test.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
import xarray as xr

from tacit.base.estimate import Certain
from tacit.certify import radius
from tacit.data import ClusterMixture
from tacit.lab import Bench, Claim, Expected, Outcome
from tacit.nets import average_net, decoupled_net, linear_rule
from tacit.papers._shared.fits import listed
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
EXACT = "distances are computed exactly, or certified from below, at fixed centres"


def run(config: Picture, bench: Bench) -> Outcome:
    """Exact distances in the plane and on the simplices."""
    data = xr.merge(
        [
            plane(pentagon()),
            bench.part("sweep", lambda: sweep(config)),
        ]
    )
    return Outcome(data, tuple(claims(data, config, bench)))


def plane(mixture: ClusterMixture) -> xr.Dataset:
    """Exact distances of the five centres over their norm, with sgn(0) = -1, and the moves that break f_FD."""
    f_FA = radius(average_net(mixture), mixture.centres, mixture.labels).upper.numpy()
    ties, strict = (moves_to_boundary(mixture, ties_break=ties) for ties in (True, False))
    move = np.where(mixture.labels.numpy()[:, None] > 0, ties, strict)
    distances = np.stack([f_FA, np.linalg.norm(move, axis=1)])
    return xr.Dataset(
        {
            "pentagon_distance": (("classifier", "centre"), distances),
            "move": (("centre", "axis"), move),
        },
        coords={"classifier": ["f_FA", "f_FD"]},
    )


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


def claims(data: xr.Dataset, config: Picture, bench: Bench) -> Iterator[Claim]:
    """The caption, and the closed forms."""
    judge = bench.claims(
        WHERE,
        source="words",
        bar="ours: larger at all; the caption's 'much larger' has no number",
        regime="inside: centres of one norm that sum to zero, in high dimension",
    )
    off = Certain(nonlinearity(config, bench), "an identity, at random points", config.n)
    text = "where the centres sum to zero f_FA is a linear classifier (relative deviation)"
    yield judge("linear", text, Expected(max=1e-12), off, bar="derived: rounding", any_size=True)
    near, far = signed(data.distance)
    ratio = Certain(float((far / near).min()), EXACT, far.size)
    text = f"simplex, K = {listed(config.K)}: centres are farther from f_FD's boundary than f_FA's (least ratio)"
    yield judge("simplex", text, Expected(min=1.0), ratio, any_size=True)
    f_FA, f_FD = data.pentagon_distance.values
    worst = int((f_FD / f_FA).argmin())
    because = f"centre {worst + 1} is {f_FA[worst]:.3f} from f_FA's boundary and {f_FD[worst]:.3f} from f_FD's"
    text = (
        "pentagon in the plane: centres are farther from f_FD's boundary than f_FA's (least ratio)"
    )
    ratio = Certain(float(f_FD[worst] / f_FA[worst]), EXACT, 5)
    regime = "schematic: in the caption's words; its instance is high-dimensional"
    yield judge(
        "pentagon", text, Expected(min=1.0), ratio, because=because, regime=regime, any_size=True
    )
    text = "f_FA's boundary, and the moves that break f_FD, are as long as the closed forms (relative deviation)"
    bar = "derived: rounding, of a distance that is found by minimisation"
    forms = Certain(off_forms(data.distance), EXACT, data.distance.size // 2)
    yield judge("forms", text, Expected(max=1e-9), forms, source="check", bar=bar, any_size=True)


def nonlinearity(config: Picture, bench: Bench) -> float:
    """|f_FA(x) - <S+, x>| at random points, relative to the largest value seen."""
    worst = 0.0
    for mixture in (pentagon(), *(simplex_mixture(K, K) for K in config.K)):
        generator = bench.generator("linear", mixture.D)
        x = torch.randn(config.n, mixture.D, generator=generator, dtype=torch.float64)
        f = average_net(mixture)(x)
        # u = S+ - S- = 2 S+
        worst = max(worst, float((f - linear_rule(mixture)(x) / 2).abs().max() / f.abs().max()))
    return worst


def signed(distance: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """f_FA's distance and the certified one of f_FD with sgn(0) = -1: f = 0 breaks positive centres alone."""
    lower = distance.sel(end="lower")
    ties, strict = (lower.sel(boundary=f"f_FD, {reading}") for reading in ("ties", "strict"))
    return distance.sel(boundary="f_FA", end="upper"), ties.where(ties.side == "positive", strict)


def off_forms(distance: xr.DataArray) -> float:
    """The largest relative deviation of the upper ends from the closed forms."""
    upper, worst = distance.sel(end="upper"), 0.0
    for K in map(int, distance.K.values):
        for side, m in (("positive", (K + 1) // 2), ("negative", K // 2)):
            forms = [f_FA_distance(m, K), *(f_FD_distance(K, r) for r in ("ties", "strict"))]
            here = upper.sel(K=K, side=side).values
            worst = max(worst, float(np.abs(here / forms - 1).max()))
    return worst
