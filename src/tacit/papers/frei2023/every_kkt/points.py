"""One KKT point: its certificate, its errors, what z does to it, and the lemmas of Appendices A and D."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from tacit.attack import frei2023_z
from tacit.base.shapes import Rows
from tacit.data import ClusterMixture, Samples
from tacit.measure import kkt_residual
from tacit.nets import TwoLayerNet
from tacit.papers._shared.assumptions import check_assumption, noise_term
from tacit.papers.frei2023._shared.trained import flip_etas, proof_eta
from tacit.train import KktPoint

EXACT = 1e-6  # of stationarity and slackness: what is a KKT point
KINK = 1e-6
SAME = 1e-3  # two functions whose outputs differ by less than this, of the largest, are one
PROBES = 200
TWICE = 2.0  # times sqrt(d/k)
NAMES = (
    "stationarity", "slackness", "value", "neurons", "wrong", "kept_proof", "kept_twice", "median",
    "longest", "A.10", "A.11", "A.12", "D.2", "D.3", "D.4", "D.6", "D.7", "D.8",
)  # fmt: skip


@dataclass(frozen=True)
class Theory:
    """The constants of the proofs for one mixture: k, p, Delta, c' and E = d - Delta - k (p + Delta)."""

    d: int
    k: int
    p: float
    delta: float

    @property
    def c(self) -> float:
        """c' = k (p + Delta + 1)/(d - Delta + 1), at most 1/10 by Assumption 2.2."""
        return self.k * (self.p + self.delta + 1) / (self.d - self.delta + 1)

    @property
    def room(self) -> float:
        """E, which Lemma D.5 says is positive."""
        return self.d - self.delta - self.k * (self.p + self.delta)

    @property
    def turns_on(self) -> float:
        """eta_1 = (2 Delta + p + 1)/E: from there on the other class's neurons are on (Lemma D.6)."""
        return (2 * self.delta + self.p + 1) / self.room

    @property
    def least_output(self) -> float:
        """What Lemma A.12's proof leaves for y N(x): (1 - c'/(1-2c')) (d-Delta+1)/(3d+Delta+1) - 2c'/(1-2c')."""
        lost = self.c / (1 - 2 * self.c)
        return (1 - lost) * (self.d - self.delta + 1) / (3 * self.d + self.delta + 1) - 2 * lost

    @property
    def sums(self) -> tuple[float, float]:
        """Lemmas A.11 and A.10: a cluster's sum of lambda_i v_j^2 phi_ij is no less, and no more."""
        low = (1 - self.c / (1 - 2 * self.c)) / (3 * self.d + self.delta + 1)
        return low, 1 / ((1 - 2 * self.c) * (self.d - self.delta + 1))


def theory_of(mixture: ClusterMixture) -> Theory:
    """Of a mixture."""
    known = check_assumption(mixture)
    return Theory(mixture.D, mixture.K, known.overlap, noise_term(mixture.D, mixture.sd))


def nice(test: Samples, train: Samples, mixture: ClusterMixture) -> Bool[Tensor, " t"]:
    """Which fresh points are as Lemmas A.12 and D.1 ask: all products with training points are in bounds."""
    known = theory_of(mixture)
    xi = test.x - mixture.centres[test.z]
    noise = train.x - mixture.centres[train.z]
    products = test.x @ train.x.T
    same = test.z.unsqueeze(1) == train.z
    near = torch.where(same, (products - known.d).abs(), products.abs() - known.p) <= known.delta
    small = ((xi @ train.x.T).abs() <= known.delta) & ((xi @ noise.T).abs() <= known.delta)
    return (near & small).all(1)


def certificate(point: KktPoint, train: Samples) -> tuple[float, float]:
    """Stationarity and slackness by `kkt_residual`, which knows nothing of the program that found the point."""
    found = kkt_residual(point.net, train.x, train.y, slack=EXACT, kink=KINK, enough=EXACT / 10)
    return found.stationarity, found.slackness


def measured(
    point: KktPoint, train: Samples, test: Samples, mixture: ClusterMixture, fine: Tensor
) -> tuple[dict[str, float], np.ndarray]:
    """The numbers of `NAMES`, and the median eta of each cluster's points; `fine`: which tests are nice."""
    net, known = point.net, theory_of(mixture)
    u = frei2023_z(mixture)
    along, unit = net.w @ u, math.sqrt(known.d / known.k) / float(u.norm())
    etas = flip_etas(net, test.x, test.y, along)
    output = test.y * net(test.x)
    medians = np.array([float(etas[test.z == q].median()) for q in range(known.k)])
    stationarity, slackness = certificate(point, train)
    proof = proof_eta(mixture, known.d)
    row = {
        "stationarity": stationarity,
        "slackness": slackness,
        "value": point.value,
        "neurons": float(len(net.v)),
        "wrong": float((output <= 0).sum()),
        "kept_proof": kept(net, test, u, proof),
        "kept_twice": kept(net, test, u, TWICE * unit),
        "median": float(etas.median()) / unit,
        "longest": float(medians.max()) / unit,
        **lemmas(point, train, test, mixture, fine),
        **flip_lemmas(net, test, u, proof, fine),
    }
    return row, medians


def kept(net: TwoLayerNet, test: Samples, u: Tensor, eta: float) -> float:
    """How many points keep their sign at x - y eta u, or had the wrong one; NaN for no eta."""
    if math.isnan(eta):
        return math.nan
    moved = test.x - eta * test.y.unsqueeze(1) * u
    before, after = test.y * net(test.x) > 0, test.y * net(moved) > 0
    return float((before == after).sum())


def lemmas(
    point: KktPoint, train: Samples, test: Samples, mixture: ClusterMixture, fine: Tensor
) -> dict[str, float]:
    """How far each lemma is used up, with the point's own multipliers: at most 1 where it holds.

    A.10  the largest sum of a cluster and a sign over its bound
    A.11  the bound over the least sum of the own sign
    A.12  the proof's least y N(x) over the least at nice points
    D.2   the largest |N(x)| at nice points, over 2
    D.3   the most negative input at nice points over its bound
    D.4   the bound over |<w_j, u>|, the worst neuron
    D.6   the least eta that turns a neuron j on at x + sign(v_j) eta u over eta_1, the worst of x and j
    """
    net, known = point.net, theory_of(mixture)
    positive = net.v > 0
    each = point.multipliers.unsqueeze(1) * net.v.square() * point.corners
    sums = torch.stack([each[:, positive].sum(1), each[:, ~positive].sum(1)], 1)
    by_cluster = torch.zeros(known.k, 2, dtype=torch.float64).index_add_(0, train.z, sums)
    own = torch.where(mixture.labels > 0, by_cluster[:, 0], by_cluster[:, 1])
    low, high = known.sums
    x, y = test.x[fine], test.y[fine]
    output = y * net(x)
    weight = (point.multipliers.unsqueeze(1) * point.corners).sum(0) * net.v.abs()
    inputs = x @ net.w.T + (0.0 if net.b is None else net.b)
    across = net.v.sign() * (net.w @ frei2023_z(mixture))
    return {
        "A.10": float(by_cluster.max()) / high,
        "A.11": low / float(own.min()),
        "A.12": over(known.least_output, float(output.min())),
        "D.2": float(output.abs().max()) / 2,
        "D.3": float((-inputs.amin(0) / weight).max()) / (2 * known.delta + known.p + 1),
        "D.4": float((weight * known.room / across).max())
        if bool((across > 0).all())
        else math.inf,
        "D.6": float((-inputs / across).max()) / known.turns_on
        if bool((across > 0).all())
        else math.inf,
    }


def flip_lemmas(
    net: TwoLayerNet, test: Samples, u: Tensor, eta: float, fine: Tensor
) -> dict[str, float]:
    """Lemmas D.7 and D.8: 1 over the least -y N(x - y eta u) at nice points of a class, at most 1 if they hold.

    NaN for no eta, and where no point of the class is nice.
    """
    found = {}
    for name, sign in (("D.7", 1), ("D.8", -1)):
        mine = fine & (test.y == sign)
        known = bool(mine.any()) and not math.isnan(eta)
        least = float((-sign * net(test.x[mine] - sign * eta * u)).min()) if known else math.nan
        found[name] = over(1.0, least) if known else math.nan
    return found


def over(bound: float, value: float) -> float:
    """bound / value; inf where the value is not positive."""
    return bound / value if value > 0 else math.inf


def probes(train: Samples, mixture: ClusterMixture, generator: torch.Generator) -> Rows:
    """Points that tell functions apart: Gaussian ones of the data's length, and data moved along u."""
    wide = torch.randn(PROBES, mixture.D, generator=generator, dtype=torch.float64)
    some = torch.randint(len(train.y), (PROBES,), generator=generator)
    share = torch.rand(PROBES, 1, generator=generator, dtype=torch.float64)
    moved = train.x[some] - share * train.y[some].unsqueeze(1) * frei2023_z(mixture)
    return torch.cat([wide, moved])


def told_apart(outputs: list[Tensor]) -> list[int]:
    """Functions are numbered as they come: each has the number of the first that it equals on the probes."""
    kinds: list[Tensor] = []
    found = []
    for mine in outputs:
        size = SAME * float(mine.abs().max())
        same = [i for i, theirs in enumerate(kinds) if float((mine - theirs).abs().max()) <= size]
        if not same:
            kinds.append(mine)
        found.append(same[0] if same else len(kinds) - 1)
    return found
