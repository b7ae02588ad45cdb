"""The bounds of Proposition 1 and Theorems 1 and 3 where they are between 1 and 1e-12, against the truth.

    prop1.F    P( F errs )                                <= 4 exp(-C D/(4 alpha^2 K))
    prop1.Fp   P( F^(p) errs )                            <= 2(K+1) exp(-C D/(alpha^2 K^2)),  p >= 1
    thm1.Fp    P( F^(p) is broken in (sqrt(2)-delta)/2 )  <= 2(K+1) exp(-C D delta^2/(2 alpha^2 K^2))
    thm3.F     P( F is broken in (1-rho)/sqrt(K) )        <= 2 exp(-C D rho^2/(K alpha^2))
    thm3.Fp    P( F^(p) survives (sqrt(2)+delta)/2 )      <= 4 exp(-C D delta^2/(8 alpha^2 K^2))

The third is the poster's too (min2025).

Where these are below 1, the failures are too rare to be counted: at K = 10 the second is 1 where an error has
probability 1e-68. So the probabilities are integrated (`integrals.py`), or sampled by importance (`sampling.py`).
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from tacit.certify import radius
from tacit.data import Samples, cluster_mixture, orthogonal_centres
from tacit.lab import Bench, Outcome
from tacit.measure import proportion
from tacit.nets import TwoLayerNet, average_net, centre_net
from tacit.papers.min2024.tails.bounds import NAMES, Printed
from tacit.papers.min2024.tails.claims import claims
from tacit.papers.min2024.tails.figure import figure
from tacit.papers.min2024.tails.integrals import log_failure, log_failure_average
from tacit.papers.min2024.tails.sampling import sampled
from tacit.papers.min2024.tails.settings import Tails

LOUD = 2.5  # 1/s where failures are counted: a hundredth to a tenth of the points
INTEGRATED = 2.0  # the power at which perturbed F^(p) is integrated
SAMPLED = ("prop1.Fp", "thm1.Fp", "thm3.Fp")
ENDS = ["value", "low", "high"]


def run(config: Tails, bench: Bench) -> Outcome:
    """Integrate at every bound, sample where there is no integral, and check one by the other and by counting."""
    pairs = list(zip(config.K, config.K1, strict=True))
    rows = [
        bench.part(f"K{K}-{K1}", partial(integrated, config, K, K1))
        for K, K1 in bench.steps(pairs, "integrals")
    ]
    data = xr.concat(rows, "K")
    rows = [
        bench.part(f"sampled{K}-{K1}", partial(by_importance, config, bench, K, K1))
        for K, K1 in bench.steps(pairs, "importance sampling")
    ]
    data = data.merge(xr.concat(rows, "K"))
    rows = [
        bench.part(f"counted{K}-{K1}", partial(counted, config, bench, K, K1))
        for K, K1 in bench.steps(pairs, "counting")
    ]
    data = data.merge(xr.concat(rows, "K"))
    data = data.assign_coords(K=list(config.K), K1=("K", list(config.K1)))
    return Outcome(data, tuple(claims(data, config, bench)))


def truth(name: str, p: float, K: int, K1: int, m: float, config: Tails) -> float:
    """log P of the bound's event at 1/s = m, over both classes: integrals."""
    above, below = ((math.sqrt(2) + sign * config.delta) / 2 * m for sign in (1, -1))

    def one(own: int, other: int) -> float:
        match name:
            case "prop1.F":
                return log_failure_average(own, other, m)
            case "prop1.Fp":
                return log_failure(p, own, other, m)
            case "thm1.Fp":
                return log_failure(p, own, other, m, below)
            case "thm3.F":
                return log_failure_average(own, other, m, (1 - config.rho) / math.sqrt(K) * m)
            case _:
                return log_failure(p, own, other, m, above, kept=True)

    K2 = K - K1
    return float(np.logaddexp(math.log(K1 / K) + one(K1, K2), math.log(K2 / K) + one(K2, K1)))


def integrated(config: Tails, K: int, K1: int) -> xr.Dataset:
    """log P for every bound: F^(p) on clean data at each p, perturbed at p = 2."""
    printed = Printed(K, config.rho, config.delta)

    def along(name: str, p: float) -> list[float]:
        return [truth(name, p, K, K1, printed.m(name, value), config) for value in config.bound]

    clean = np.array([along("prop1.Fp", p) for p in config.p])
    found = {
        name: (("bound",), np.array(along(name, INTEGRATED)))
        for name in NAMES
        if name != "prop1.Fp"
    }
    return xr.Dataset(
        {"prop1.Fp": (("p", "bound"), clean), **found},
        coords={"bound": list(config.bound), "p": list(config.p)},
    )


def by_importance(config: Tails, bench: Bench, K: int, K1: int) -> xr.Dataset:
    """log P of perturbed F^(p) at p > 2; and of clean F^(p), where the integral is known."""
    printed = Printed(K, config.rho, config.delta)
    of = len(config.K) * len(config.bound)
    found = np.zeros((len(SAMPLED), len(config.sampled), len(config.bound), len(ENDS)))
    clean = np.zeros((len(config.sampled), len(config.bound)))
    for cell in np.ndindex(found.shape[:3]):
        name, p, value = SAMPLED[cell[0]], config.sampled[cell[1]], config.bound[cell[2]]
        m, generator = printed.m(name, value), bench.generator("importance", name, p, K, K1, value)
        delta = config.delta
        if name == "prop1.Fp":
            delta, clean[cell[1:]] = math.sqrt(2), truth(name, p, K, K1, m, config)
        scale, share = sampled(p, K, K1, m, delta, name == "thm3.Fp", config.n, generator, of)
        found[cell] = [scale + logarithm(x) for x in (share.value, share.low, share.high)]
    return xr.Dataset(
        {
            "sampled": (("event", "power", "bound", "end"), found),
            "clean": (("power", "bound"), clean),
        },
        coords={
            "event": list(SAMPLED),
            "power": list(config.sampled),
            "bound": list(config.bound),
            "end": ENDS,
        },
    )


def logarithm(x: float) -> float:
    """log x, -inf where an interval reaches 0."""
    return math.log(x) if x > 0 else -math.inf


def counted(config: Tails, bench: Bench, K: int, K1: int) -> xr.Dataset:
    """Plain counts over integrals, at a noise where failures are common: value, low, high."""
    mixture = cluster_mixture(orthogonal_centres(K, K), K1, 1 / LOUD)
    points = mixture.sample(config.counted, bench.generator("counted", K, K1))
    found = dict(events(config, points, K, K1))
    of = len(config.K) * len(found)
    shares = [(proportion(k, config.counted, of=of), goal) for k, goal in found.values()]
    rows = [[e.value / goal, e.low / goal, e.high / goal] for e, goal in shares]
    return xr.Dataset(
        {"counted": (("what", "end"), np.array(rows))}, coords={"what": list(found), "end": ENDS}
    )


def events(
    config: Tails, points: Samples, K: int, K1: int
) -> Iterator[tuple[str, tuple[int, float]]]:
    """What is counted, how often it was seen, and its integral."""
    mixture = cluster_mixture(orthogonal_centres(K, K), K1, 1 / LOUD)

    def expected(name: str, p: float = INTEGRATED) -> float:
        return math.exp(truth(name, p, K, K1, LOUD, config))

    def errors(net: TwoLayerNet) -> int:
        return int((net(points.x) * points.y <= 0).sum())

    F, square = average_net(mixture), centre_net(mixture, INTEGRATED)
    yield "prop1.F", (errors(F), expected("prop1.F"))
    for p in config.p:
        yield f"prop1.Fp, p = {p:g}", (errors(centre_net(mixture, p)), expected("prop1.Fp", p))
    radii = radius(F, points.x, points.y).lower
    edge = (1 - config.rho) / math.sqrt(K)
    yield "thm3.F", (int((radii <= edge).sum()), expected("thm3.F"))
    radii = radius(square, points.x, points.y, up_to=0).upper
    above, below = ((math.sqrt(2) + sign * config.delta) / 2 for sign in (1, -1))
    yield "thm1.Fp", (int((radii <= below).sum()), expected("thm1.Fp"))
    yield "thm3.Fp", (int((radii > above).sum()), expected("thm3.Fp"))


def draw(data: xr.Dataset, config: Tails) -> Figure:
    """Truth against bound, and how much faster the truth falls."""
    return figure(data, config)
