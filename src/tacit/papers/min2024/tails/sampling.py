"""Importance sampling of rare failures of F^(p), p > 2, with exact radii: where there is no integral.

Points are drawn from the cluster's own law, conditioned on a polyhedron that holds the failures, but for a slack;
those that fail are counted, and the polyhedron's probability is known. With z = (x - mu_k)/s,
s = alpha/sqrt(D):

- broken: some other-class coordinate has (z_l - z_k)/sqrt(2) >= t, t the distance from the centre to the
  failures. A point that lies in N of these half-spaces has been drawn N times as often, and counts 1/N.
- kept: z_k - max_l z_l >= c. Given z_k the others are independent below z_k - c; z_k itself is drawn from a
  normal law about its most likely value.

The failure set bulges out of the polyhedron by (sum of third powers)/m^2 or less; the slack of `SLACK` e-folds of
the probability leaves a percent or less of the failures outside.
"""

import math

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtri_exp
from torch import Tensor

from tacit.base.estimate import Estimate
from tacit.certify import radius
from tacit.data import cluster_mixture, orthogonal_centres
from tacit.measure import mean_of
from tacit.nets import centre_net

SLACK = 2.5


def sampled(
    p: float, K: int, K1: int, m: float, delta: float, kept: bool, n: int, generator: torch.Generator,
    of: int = 1,
) -> tuple[float, Estimate]:  # fmt: skip
    """P(F^(p) is broken within (sqrt(2) - delta)/2), or P(it survives (sqrt(2) + delta)/2) where `kept`; m = 1/s.

    As (log of a scale, estimate in that scale): the probability may be below the least double. n points for each
    class, counted as pairs, one of each; of: how many estimates are judged together. delta = sqrt(2):
    clean errors.
    """
    mixture = cluster_mixture(orthogonal_centres(K, K), K1, 1 / m)
    net = centre_net(mixture, p)
    at = (math.sqrt(2) + (delta if kept else -delta)) / 2
    logs = []
    for k, clusters in ((0, K1), (K1, K - K1)):
        others = torch.nonzero(mixture.labels != mixture.labels[k]).squeeze(1)
        if kept:
            z, log_weight = risen(K, k, others, delta / math.sqrt(2) * m, n, generator)
        else:
            z, log_weight = towards(K, k, others, delta / 2 * m, n, generator)
        x, y = mixture.centres[k] + z / m, mixture.labels[k].expand(n)
        if at < 1e-12:
            event = net(x) * y <= 0
        elif kept:
            event = radius(net, x, y, up_to=0).upper > at
        else:
            event = radius(net, x, y, up_to=1.01 * at).lower <= at
        log_weight = log_weight + math.log(clusters / K)
        logs.append(torch.where(event, log_weight, -torch.inf).numpy())
    scale = max(float(each.max()) for each in logs)
    if not math.isfinite(scale):
        return 0.0, Estimate(0.0, -math.inf, math.inf, n, "pairs of points")
    values = np.exp(logs[0] - scale) + np.exp(logs[1] - scale)
    return scale, mean_of(values, of=of, over="pairs of points")


def below(log_share: Float[Tensor, "*n"], edge: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """The value of N(0, 1), conditioned to lie below the edge, at this (log) share of its law."""
    return torch.as_tensor(ndtri_exp(log_share.numpy() + log_ndtr(edge.numpy())))


def towards(
    K: int, k: int, others: Tensor, t: float, n: int, generator: torch.Generator
) -> tuple[Float[Tensor, "n K"], Float[Tensor, " n"]]:
    """Points of a union of half-spaces (z_l - z_k)/sqrt(2) >= t - slack, and the log of what each counts."""
    edge = t - SLACK / t
    z = torch.randn(n, K, generator=generator, dtype=torch.float64)
    chosen = others[torch.randint(len(others), (n,), generator=generator)]
    along = torch.zeros(n, K, dtype=torch.float64)
    along[:, k] = -math.sqrt(0.5)
    along[torch.arange(n), chosen] = math.sqrt(0.5)
    log_share = torch.rand(n, generator=generator, dtype=torch.float64).log()
    far = -below(log_share, torch.full((n,), -edge, dtype=torch.float64))
    z = z + (far - (z * along).sum(1)).unsqueeze(1) * along
    inside = ((z[:, others] - z[:, [k]]) * math.sqrt(0.5) >= edge * (1 - 1e-12)).sum(1)
    return z, math.log(len(others)) + float(log_ndtr(-edge)) - inside.log()


def risen(
    K: int, k: int, others: Tensor, c: float, n: int, generator: torch.Generator
) -> tuple[Float[Tensor, "n K"], Float[Tensor, " n"]]:
    """Points with z_k - max_l z_l >= c - slack, and the logarithm of what each counts."""
    edge, number = c - SLACK / c, len(others)

    def slope(e: float) -> float:
        """Of the log-density -e^2/2 + K2 log Phi(e - edge) of z_k: 0 at its top."""
        b = e - edge
        hazard = math.exp(-b * b / 2 - 0.5 * math.log(2 * math.pi) - float(log_ndtr(b)))
        return number * hazard - e

    top = brentq(slope, 0.0, edge + 10)
    sd = 1.3 / math.sqrt(1 + number)  # a little wider than the law, so that no point counts much
    z = torch.randn(n, K, generator=generator, dtype=torch.float64)
    unit = z[:, k].clone()
    own = top + sd * unit
    log_share = torch.rand(n, number, generator=generator, dtype=torch.float64).log()
    limit = (own - edge).unsqueeze(1).expand(n, number).contiguous()
    z[:, others] = below(log_share, limit)
    z[:, k] = own
    log_law = -(own**2) / 2 + number * torch.as_tensor(log_ndtr((own - edge).numpy()))
    return z, log_law + unit**2 / 2 + math.log(sd)
