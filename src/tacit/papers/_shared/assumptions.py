"""What frei2023 asks of a mixture (Assumption 2.2) and of a data set (properties P1 to P6).

With p = max_{i != j} |<mu_i, mu_j>| and Delta = 4 sigma sqrt(d) ln d, Assumption 2.2 reads

    ||mu_j|| = sqrt(d),    0 < sigma <= 1,    K (p + Delta + 1) <= (d - Delta + 1) / 10.

Few mixtures of a size one can sample satisfy it, so every claim about that paper says on which side
it was measured.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data.clusters import ClusterMixture, Samples

SAME_NORM = 1e-9  # relative: rounding of a centre's norm


@dataclass(frozen=True)
class Assumption:
    """Assumption 2.2 of frei2023 for one mixture: the two sides, and which conditions hold.

    `overlap` is p, the largest |<mu_i, mu_j>|, and `cosine` the same over d.
    """

    left: float
    right: float
    overlap: float
    cosine: float
    norms: bool
    noise: bool

    @property
    def separated(self) -> bool:
        """The inequality."""
        return self.left <= self.right

    @property
    def holds(self) -> bool:
        """All three conditions."""
        return self.norms and self.noise and self.separated


def noise_term(d: float, sigma: float) -> float:
    """Delta = 4 sigma sqrt(d) ln d (frei2023, Appendix A.1)."""
    return 4 * sigma * math.sqrt(d) * math.log(d)


def check_assumption(mixture: ClusterMixture, d: float | None = None) -> Assumption:
    """Assumption 2.2 for a mixture; `d` is the dimension where the mixture is given in fewer
    coordinates (those of span(centres))."""
    d = mixture.D if d is None else d
    gram = mixture.centres @ mixture.centres.T
    norms = gram.diagonal().sqrt()
    apart = gram - gram.diagonal().diag()
    p = float(apart.abs().max())
    delta = noise_term(d, mixture.sd)
    return Assumption(
        left=mixture.K * (p + delta + 1),
        right=(d - delta + 1) / 10,
        overlap=p,
        cosine=p / d,
        norms=bool(((norms / math.sqrt(d) - 1).abs() <= SAME_NORM).all()),
        noise=0 < mixture.sd <= 1,
    )


def assumption_line(mixture: ClusterMixture) -> str | None:
    """One line that says how Assumption 2.2 is violated, with both sides of its inequality; None if it holds."""
    known = check_assumption(mixture)
    if known.holds:
        return None
    wrong = (
        []
        if known.separated
        else [
            f"K (p + Delta + 1) = {known.left:.6g} is not <= (d - Delta + 1)/10 = {known.right:.6g}"
        ]
    )
    wrong += [] if known.noise else [f"sigma = {mixture.sd:g} is not in (0, 1]"]
    wrong += [] if known.norms else ["the centres do not have norm sqrt(d)"]
    return (
        f"K={mixture.K}, d={mixture.D}, sigma={mixture.sd:g} are outside Assumption 2.2 of frei2023: "
        f"{'; '.join(wrong)}. Theorems 3.1 and 4.2 say nothing here; what is measured is measured all the same"
    )


def missing_line(samples: Samples, mixture: ClusterMixture, d: int | None = None) -> str | None:
    """One line that names the clusters without a training point; None if every cluster has one.

    `d` is the dimension where the mixture is given in fewer coordinates.
    """
    counts = torch.bincount(samples.z.flatten(), minlength=mixture.K)
    missing = (counts == 0).nonzero().flatten().tolist()
    if not missing:
        return None
    named = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
    enough = math.ceil(math.log(d or mixture.D) ** 2 / float(mixture.weights.min()))
    return (
        f"n={samples.z.numel()} points hold none of {len(missing)} of the {mixture.K} clusters ({named}): "
        f"no net can learn them; n={enough} gives the rarest cluster ln^2 d points"
    )


def cluster_limit(d: float, sigma: float, overlap: float = 0.0) -> float:
    """(d - Delta + 1) / (10 (p + Delta + 1)), which Assumption 2.2 asks K not to exceed."""
    delta = noise_term(d, sigma)
    return max((d - delta + 1) / (10 * (overlap + delta + 1)), 0.0)


def most_clusters(d: float, sigma: float, overlap: float = 0.0) -> int:
    """The largest K that Assumption 2.2 admits."""
    return math.floor(cluster_limit(d, sigma, overlap))


@dataclass(frozen=True)
class Property:
    """One of P1..P6 for one data set: `worst` is the largest ratio to the threshold, <= 1 if it
    holds."""

    worst: float

    @property
    def holds(self) -> bool:
        """Whether no pair or point exceeds the threshold."""
        return self.worst <= 1


def sample_properties(mixture: ClusterMixture, samples: Samples) -> dict[str, Property]:
    """P1 to P6 of frei2023, Appendix A.1, with xi_i = x_i - mu_{z_i}.

    P1  ||xi_i|| <= sigma sqrt(2d)
    P2  |<xi_i, xi_j>| <= sigma^2 sqrt(2d) ln d for i != j
    P3  |<mu_q, xi_i>| <= sigma sqrt(d) ln d
    P4  |<x_i, x_j>| <= p + Delta across clusters
    P5  d - Delta <= <x_i, x_j> <= 3d + Delta within a cluster, i = j included;
        as a ratio, |<x_i, x_j> - 2d| / (d + Delta)
    P6  every cluster has a point; as a ratio, 1 / (the fewest points in a cluster)
    """
    x, z, sigma, d = samples.x, samples.z, mixture.sd, mixture.D
    xi = x - mixture.centres[z]
    known = check_assumption(mixture)
    delta, log = noise_term(d, sigma), math.log(d)
    noise, points = xi @ xi.T, x @ x.T
    same = z.unsqueeze(1) == z
    fewest = int(torch.bincount(z, minlength=mixture.K).min())
    worst = {
        "P1": ratio(noise.diagonal().max().sqrt(), sigma * math.sqrt(2 * d)),
        "P2": ratio(
            (noise - noise.diagonal().diag()).abs().max(), sigma**2 * math.sqrt(2 * d) * log
        ),
        "P3": ratio((xi @ mixture.centres.T).abs().max(), sigma * math.sqrt(d) * log),
        "P4": ratio(torch.where(same, 0.0, points.abs()).max(), known.overlap + delta),
        "P5": ratio(torch.where(same, (points - 2 * d).abs(), 0.0).max(), d + delta),
        "P6": 1 / fewest if fewest else math.inf,
    }
    return {name: Property(value) for name, value in worst.items()}


def nice_probability(n: int, d: int) -> float:
    """Proposition A.1: P1 to P6 hold with at least this probability, n >= K ln^2 d (below 0: no
    statement)."""
    rare = math.exp(-(math.log(d) ** 2) / 2)
    return 1 - (3 * n**2 * rare + n**2 * math.exp(-d / 16) + d * rare**2)


def ratio(value: Float[Tensor, ""], threshold: float) -> float:
    """value / threshold; 0 where nothing was there to exceed a threshold of 0."""
    found = float(value)
    return found / threshold if threshold > 0 else (math.inf if found > 0 else 0.0)
