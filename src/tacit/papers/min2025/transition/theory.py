r"""The alignment phase at alpha = 0 in closed form: what neurons have learned when the first cluster is fitted.

Data: K orthonormal points mu_k with labels y_k and weights c_k. While the net is near zero every pull is c_k, and
a balanced neuron of sign s has u' = P grad G(u), (log mass)' = 2 G(u), G(u) = s sum_k c_k y_k relu(u_k)^p
(min2024, Section 4.1). Without the projection, z' = grad G(z), the coordinates decouple: from z_k(0) = u_k(0) > 0

    z_k^(2-p)  =  u_k(0)^(2-p) + (2-p) p s y_k c_k sigma            (p = 2: z_k = u_k(0) exp(2 s y_k c_k sigma))

and coordinates below 0 rest: a neuron never turns to a cluster of its class that does not activate it. Then
u = z/|z|, d log|z| = p G dt gives mass = mass(0) (|z|/|z(0)|)^(2/p), and only the clock t = int |z|^(p-2) d sigma
is a quadrature. It is taken along tau = log of the growth of the leading coordinate m, argmax_k c_k u_k(0)^(p-2):

    z_k^(2-p) = u_k(0)^(2-p) +- (c_k/c_m) u_m(0)^(2-p) (exp((2-p) tau) - 1),
    dt/d tau  = (|z|/z_m)^(p-2) / (p c_m).

What follows (equal counts, weights of size eps, so that masses grow by about eps^-2 before anything is fitted):

- *p > 2.* log(u_k/u_l) grows as eps^(-p(p-2)) near the average: neurons reach centres where p - 2 is larger than
  about const / (2 log(1/eps)), and stay spread below.
- *p < 2.* The same logarithm falls as eps^(p(2-p)): neurons reach the average *of the clusters that activate
  them*, u_k ~ c_k^(1/(2-p)). m of K1 clusters have G = c m^(1-p/2): those with all of them outgrow those with m
  by eps^(-2 (1 - (m/K1)^(1-p/2))). Near p = 2 that is slow too.

So both boundaries meet at p = 2 as eps -> 0, whatever the counts. p = 2 is also where the least norm that fits
changes: one average with margin 1 costs K1^(p/2), K1 centres cost K1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

GRID = 160  # points of the clock's quadrature
NEAR_TWO = 1e-9  # p = 2 is taken as the limit
HALVINGS = 40
LEAST = 1e-300


@dataclass(frozen=True)
class Clusters:
    """K orthonormal points: labels (K,) and weights (K,) that sum to 1."""

    labels: Float[Tensor, " K"]
    weights: Float[Tensor, " K"]


@dataclass(frozen=True)
class Alignment:
    """The neurons that some point of their class activates, each with its curve of directions and its clock.

    u0 (h, K): directions at the start (their part in the span of the points); log_mass0 (h,); own (h, K): the
    cluster is of the neuron's class; lead (h,): the coordinate whose growth tau is; t (h, GRID): the clock.
    """

    p: float
    clusters: Clusters
    u0: Float[Tensor, "h K"]
    outside: Float[Tensor, " h"]
    log_mass0: Float[Tensor, " h"]
    own: Bool[Tensor, "h K"]
    lead: Int[Tensor, " h"]
    tau: Float[Tensor, " grid"]
    t: Float[Tensor, "h grid"]

    def state(self, time: float) -> tuple[Float[Tensor, "h K"], Float[Tensor, " h"]]:
        """Directions and log-masses at a time, all neurons at once."""
        right = torch.searchsorted(self.t, torch.full_like(self.t[:, :1], time))
        right = right.clamp(1, len(self.tau) - 1)
        t0, t1 = self.t.gather(1, right - 1), self.t.gather(1, right)
        part = (time - t0) / (t1 - t0)
        tau = self.tau[right - 1] + part * (self.tau[right] - self.tau[right - 1])
        log_z, log_size = curve(
            self.p, self.clusters, self.u0, self.outside, self.own, self.lead, tau
        )
        u = (log_z - log_size.unsqueeze(-1)).exp().squeeze(1) * self.u0.sign()
        return u, self.log_mass0 + 2 / self.p * log_size.squeeze(1)

    def log_outputs(self, time: float) -> Float[Tensor, " K"]:
        """log of sum_j mass_j relu(u_jk)^p over the neurons of the cluster's class."""
        u, log_mass = self.state(time)
        value = log_mass.unsqueeze(1) + self.p * u.clamp_min(LEAST).log()
        return torch.where(self.own & (u > 0), value, -math.inf).logsumexp(0)

    def first_fit(self, level: float) -> float:
        """The time at which the first cluster has the output `level`."""
        return self._first(lambda t: float(self.log_outputs(t).max()) >= math.log(level))

    def loss_time(self, log_loss: float) -> float:
        """The time at which sum_k c_k exp(-output_k) has fallen to exp(log_loss), were all pulls to stay."""
        log_c = self.clusters.weights.log()
        return self._first(
            lambda t: float((log_c - self.log_outputs(t).exp()).logsumexp(0)) <= log_loss
        )

    def _first(self, reached: Callable[[float], bool]) -> float:
        """By bisection in log t: the clocks of neurons far from every cluster are slow by powers of ten."""
        low, high = float(self.t[:, 1].min()), float(self.t[:, -1].max())
        for _ in range(HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if reached(middle) else (middle, high)
        return high


def alignment(
    u: Float[Tensor, "h K"],
    sign: Float[Tensor, " h"],
    log_mass: Float[Tensor, " h"],
    clusters: Clusters,
    p: float,
    level: float,
) -> Alignment:
    """The curves of balanced neurons of given signs, far enough for any of them to reach the mass `level`.

    u: directions in the coordinates of the points; of length below 1 where a part lies outside their span.
    """
    own = sign.unsqueeze(1) * clusters.labels > 0
    alive = (own & (u > 0)).any(1)
    u, own, log_mass = u[alive], own[alive], log_mass[alive]
    score = clusters.weights.log() + (p - 2) * u.clamp_min(LEAST).log()
    lead = torch.where(own & (u > 0), score, -math.inf).argmax(1)
    outside = (1 - u.square().sum(1)).clamp_min(0).sqrt()
    first = u.gather(1, lead.unsqueeze(1))
    far = p / 2 * (math.log(level) - float(log_mass.min())) - float(first.log().min()) + 5
    tau = far * torch.linspace(0, 1, GRID, dtype=u.dtype) ** 3
    grid = tau.expand(len(u), -1)
    _, log_size = curve(p, clusters, u, outside, own, lead, grid)
    rate = ((p - 2) * (log_size - first.log() - grid)).exp()
    rate = rate / (p * clusters.weights[lead].unsqueeze(1))
    steps = (rate[:, 1:] + rate[:, :-1]) / 2 * tau.diff()
    t = torch.nn.functional.pad(steps.cumsum(1), (1, 0))
    return Alignment(p, clusters, u, outside, log_mass, own, lead, tau, t)


def curve(
    p: float,
    clusters: Clusters,
    u: Float[Tensor, "h K"],
    outside: Float[Tensor, " h"],
    own: Bool[Tensor, "h K"],
    lead: Int[Tensor, " h"],
    tau: Float[Tensor, "h T"],
) -> tuple[Float[Tensor, "h T K"], Float[Tensor, "h T"]]:
    """log |z_k| and log |z| where the leading coordinate has grown by exp(tau)."""
    e = 2 - p if abs(p - 2) > NEAR_TWO else NEAR_TWO
    log_u = u.abs().clamp_min(LEAST).log()
    first = log_u.gather(1, lead.unsqueeze(1))
    ratio = clusters.weights / clusters.weights[lead].unsqueeze(1) * (e * (first - log_u)).exp()
    change = torch.where(own, ratio, -ratio).unsqueeze(1) * torch.expm1(e * tau).unsqueeze(2)
    gain = torch.log1p(change.clamp_min(-1)) / e
    leading = torch.nn.functional.one_hot(lead, u.shape[1]).bool().unsqueeze(1)
    # its own growth is tau by definition; computed, it would be lost in 1 - 1 at p > 2
    gain = torch.where(leading, tau.unsqueeze(2), gain)
    log_z = log_u.unsqueeze(1) + torch.where((u > 0).unsqueeze(1), gain, 0.0)
    rest = outside.clamp_min(LEAST).log().reshape(-1, 1, 1).expand(-1, tau.shape[1], 1)
    return log_z, torch.cat([log_z, rest], -1).mul(2).logsumexp(-1) / 2


def predicted_shares(
    curves: Alignment, level: float, threshold: float = 0.95
) -> tuple[float, float]:
    """The shares of mass at the averages and at the centres when the first cluster is fitted; the lesser class.

    At the average counts a neuron that all clusters of its class activate and that is within the threshold of
    c_k^(1/(2-p)), the maximiser of G there (p < 2). As clusters are fitted their pulls become equal, which
    carries it to the average itself. Centres attract at p >= 2 only.
    """
    u, log_mass = curves.state(curves.first_fit(level))
    averages, centres = [], []
    for label in (1.0, -1.0):
        mine = curves.clusters.labels == label
        here = curves.own[:, mine].any(1)
        v = u[here][:, mine]
        mass = (log_mass[here] - log_mass[here].max()).exp()
        goal = torch.ones_like(curves.clusters.weights[mine])
        if curves.p < 2 - NEAR_TWO:
            log_goal = curves.clusters.weights[mine].log() / (2 - curves.p)
            goal = (log_goal - log_goal.max()).exp()
        at = (v @ (goal / goal.norm()) >= threshold) & (v > 0).all(1)
        averages.append(float(mass[at].sum() / mass.sum()))
        near = (v.amax(1) >= threshold) & (curves.p >= 2)
        centres.append(float(mass[near].sum() / mass.sum()))
    return min(averages), min(centres)
