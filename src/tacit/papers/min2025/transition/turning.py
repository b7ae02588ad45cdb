r"""Why the boundary rises as the init shrinks, where there is noise and the clusters are not alike.

For p > 2 each cluster k has neurons of its own, at the maximiser u_k of G near its centre. From masses m0 they
have fitted it at T_k = log(1/m0) / (2 G(u_k)). So a cluster with a smaller pull (fewer points) comes later, and

    lag = T_l - T_a = log(1/m0)/2 (1/G(u_l) - 1/G(u_a))         grows without bound as m0 -> 0.

Meanwhile the neurons of a, which is fitted, are idle. Without noise their component along l has died out, as
exp(-p G t), and they stay. With noise of sd sigma = alpha/sqrt(D) it has not: some points of l activate them, and
a component c = <u_a, mu_l> of the order sigma^(p-1) remains. The points that are left then turn them: c' ~ p G_l
c^(p-1) takes the time c^-(p-2) / (p (p-2) G_l). If that is less than the lag, the heavy neurons of a arrive at l
before its own neurons have any mass, and serve both: a mixture. Centres are learned from the p on at which
nothing turns in time.

Here u_k, T_k and the turning are computed on the given points, the pulls of fitted clusters being 0 and all
others as at the start.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.integrate import solve_ivp

from tacit.data import ClusterMixture, Samples

Numbers = npt.NDArray[np.float64]
ARRIVED = 0.7  # cosine with the centre that a neuron has turned to
LOST = 0.8  # below this cosine with its centre a maximiser is none of the cluster's
ROUNDS = 300
HALVINGS = 7


def turning_boundary(points: Samples, mixture: ClusterMixture, log_mass: float) -> float:
    """The p in [2, 4] from which on no neuron turns before its time, by bisection."""
    low, high = 2.0, 4.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        turned = any(turns(points, mixture, label, middle, log_mass) for label in (1.0, -1.0))
        low, high = (middle, high) if turned else (low, middle)
    return (low + high) / 2


def turns(
    points: Samples, mixture: ClusterMixture, label: float, p: float, log_mass: float
) -> bool:
    """Whether neurons of some cluster of this class reach another one before its own have fitted it."""
    x, z = points.x.numpy(), points.z.numpy()
    pull = label * points.y.numpy() / len(z)
    here = [k for k in range(mixture.K) if float(mixture.labels[k]) == label and (z == k).any()]
    centres = mixture.centres.numpy()
    tops = {k: maximiser(x, pull, p, centres[k]) for k in here}
    if any(float(tops[k] @ centres[k]) < LOST for k in here):
        return True
    fitted = {k: -log_mass / (2 * height(x, pull, p, tops[k])) for k in here}
    order = sorted(here, key=lambda k: fitted[k])
    for rank, first in enumerate(order[:-1]):
        rest = np.where(np.isin(z, order[: rank + 1]), 0.0, pull)
        goals = {k: centres[k] for k in order[rank + 1 :]}
        left = fitted[order[-1]] - fitted[first]
        arrivals = turning_times(x, rest, p, tops[first], goals, left)
        if any(fitted[first] + time < fitted[k] for k, time in arrivals.items()):
            return True
    return False


def height(x: Numbers, pull: Numbers, p: float, u: Numbers) -> float:
    """G(u) = sum_i pull_i relu(<x_i, u>)^p."""
    return float(pull @ np.maximum(x @ u, 0) ** p)


def slope(x: Numbers, pull: Numbers, p: float, u: Numbers) -> Numbers:
    """grad G(u)."""
    return np.asarray(p * (pull * np.maximum(x @ u, 0) ** (p - 1)) @ x)


def maximiser(x: Numbers, pull: Numbers, p: float, u: Numbers) -> Numbers:
    """The maximiser of G on the sphere near u, by u <- grad G / |grad G|."""
    for _ in range(ROUNDS):
        ahead = slope(x, pull, p, u)
        ahead = ahead / np.linalg.norm(ahead)
        if np.abs(ahead - u).max() < 1e-10:
            break
        u = ahead
    return u


def turning_times(
    x: Numbers, pull: Numbers, p: float, u: Numbers, goals: dict[int, Numbers], end: float
) -> dict[int, float]:
    """When u' = P grad G(u) comes near each of the goals, of those that it reaches first and before the end."""

    def rate(_: float, at: Numbers) -> Numbers:
        ahead = slope(x, pull, p, at)
        return np.asarray(ahead - (ahead @ at) * at)

    def meets(goal: Numbers) -> Callable[[float, Numbers], float]:
        def event(_: float, at: Numbers) -> float:
            return float(at @ goal) - ARRIVED

        event.terminal = True  # type: ignore[attr-defined]
        return event

    found: Any = solve_ivp(
        rate, (0, end), u, events=[meets(g) for g in goals.values()], rtol=1e-4, atol=1e-8
    )
    return {k: float(t[0]) for k, t in zip(goals, found.t_events, strict=True) if len(t)}
