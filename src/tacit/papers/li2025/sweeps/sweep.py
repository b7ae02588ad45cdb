r"""What Theorems 4.5 to 4.7 are swept over, and how exponents are read off.

A sweep moves one of d, k, n and time, and leaves the others at (d0, k0, n0). Each setting is a `compact`
problem: exact in law. The time of gradient descent is eta t.

**Past the steps that one can take.** The theorems want T up to exp(sqrt k) / eta, and Theorem 4.7 at least
k^8 / eta. A coefficient grows by about (step / elapsed time) in each step, because the loss falls as one over
time. So after `steps` steps of size eta, steps of `STRIDE` times the elapsed time follow: eta t = 10^8 takes 250
of them. That is gradient descent with another step size; where both can be run, they agree to a few parts in a
thousand (tests).

That a label or a class stays unlearned is where the loss does not fall so: `thm4_7` stops there.

**eps.** Appendix B.1 has eps = max{2 ln(n/k) / (sqrt(n/k) - ln(n/k)), k^2 Delta / d, k^2 / n}, Delta = 4
sqrt(d) ln d. It is below 1 only at sizes that no machine holds: at d = k^10 its second term is 40 ln(k) / k^3,
its first, at n = k^7, is 12 ln(k) / k^3.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.optimize import brentq

from tacit.data import Samples
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import Estimate, mean_of, proportion
from tacit.nets import MultiClassNet, TwoLayerNet
from tacit.papers._shared.fits import exponent, listed
from tacit.papers.li2025.sweeps.settings import Sweep
from tacit.train import Descended

Net = TypeVar("Net", TwoLayerNet, MultiClassNet)
Array = npt.NDArray[np.float64]

STRIDE, AT_ONCE = 0.1, 5  # steps of a tenth of the elapsed time, five at a time
NEAR = 0.05  # an exponent agrees within this
PATH = {"k": 1, "d": 10, "n": 7}  # Assumption 4.3, with constants 1
PATH_BAR = "derived: o(1) asks for a negative exponent, Omega(1) for one that is not; logarithms count as powers"
EXPONENT_BAR = (
    "ours: a twentieth of a unit, a tenth of the exponent that tells sqrt(d) from sqrt(d/k)"
)
OUTSIDE = "outside: Assumption 4.3 asks for d >= k^10, n >= k^7 and eta <= d^-2"


@dataclass(frozen=True)
class Cell:
    """One setting: dimension, clusters (half of them positive), training points."""

    d: int
    k: int
    n: int

    @property
    def name(self) -> str:
        """For parts and random streams."""
        return f"d{self.d}.k{self.k}.n{self.n}"


def epsilon(d: float, k: float, n: float) -> float:
    """eps of Appendix B.1; inf where sqrt(n/k) <= ln(n/k), which no n/k > 1 does."""
    root, log = math.sqrt(n / k), math.log(n / k)
    terms = (2 * log / (root - log), k**2 * delta(d) / d, k**2 / n)
    return max(terms)


def delta(d: float) -> float:
    """Delta = 4 sqrt(d) ln d of Proposition A.6."""
    return 4 * math.sqrt(d) * math.log(d)


def growth(d: float, k: float, n: float, m: float, time: float) -> float:
    """lambda by q + e^q - 1 = kappa (d/(mk)) time, lambda = q/kappa, kappa = 1 + k/n (derived in `lemma5`)."""
    kappa = 1 + k / n
    right = kappa * d / (m * k) * time
    q = brentq(lambda q: q + math.expm1(q) - right, 0.0, 1.0 + math.log1p(right))
    return float(q) / kappa


def class_growth(d: float, k: float, n: float, h: float, time: float) -> float:
    """lambda of the multi-class net by q + (e^q - 1)/(k-1) = kappa (d/(hk)) time (derived in `thm4_7`)."""
    kappa = 1 + k / n
    right = kappa * d / (h * k) * time
    top = 1.0 + math.log1p(right * (k - 1))
    q = brentq(lambda q: q + math.expm1(q) / (k - 1) - right, 0.0, top)
    return float(q) / kappa


def course(
    net: Net,
    train: Callable[[Net, Samples, float, int], Descended[Net]],
    samples: Samples,
    eta: float,
    steps: int,
    times: Sequence[float],
) -> Iterator[Net]:
    """The net at each time eta t of `times` (ascending): `steps` steps of size eta, then growing ones."""
    done, elapsed = 0, 0.0
    for time in times:
        due = min(steps, round(time / eta)) - done
        if due > 0:
            net = train(net, samples, eta, due).net
            done += due
            elapsed = eta * done
        while elapsed < time * (1 - 1e-9) and done == steps:
            step = min(STRIDE * elapsed, (time - elapsed) / AT_ONCE)
            net = train(net, samples, step, AT_ONCE).net
            elapsed += AT_ONCE * step
        yield net


def mean_of_finite(values: npt.ArrayLike, *, of: int = 1) -> Estimate:
    """The mean over the seeds that have a value; NaN where none has."""
    flat = np.asarray(values, dtype=np.float64)
    kept = flat[np.isfinite(flat)]
    return mean_of(kept if kept.size else [math.nan], of=of)


def slope(along: xr.DataArray, *, of: int = 1) -> Estimate:
    """The exponent of `along` (axis, seed) in its axis, over the seeds that have a value in every setting."""
    (axis,) = (name for name in along.dims if name != "seed")
    values = along.transpose(axis, "seed").values
    kept = values[:, np.isfinite(values).all(0)]
    if not kept.size:
        return mean_of([math.nan])
    return exponent(along[axis].values.tolist(), kept, of=of)


def path_exponent(name: str, data: xr.Dataset) -> Estimate:
    """The exponent of k along d = k^10, n = k^7, if those of the sweeps add up; their intervals hold at once."""
    parts = [(slope(data[f"{name}_{axis}"], of=len(PATH)), times) for axis, times in PATH.items()]
    value, low, high = (
        sum(times * getattr(each, end) for each, times in parts) for end in ("value", "low", "high")
    )
    return replace(parts[0][0], value=value, low=low, high=high, n=min(e.n for e, _ in parts))


def on_path(
    id: str, name: str, what: str, expected: Expected, data: xr.Dataset, judge: Judge
) -> Claim:
    """What a theorem calls o(1), or Omega(1), as d and n grow with k as fast as Assumption 4.3 asks at least."""
    text = (
        f"{what}: exponent of k along d = k^10, n = k^7, by those of k, d and n, one size at a time"
    )
    found = path_exponent(name, data)
    return judge(id, text, expected, found, source="order", bar=PATH_BAR)


def exponents(
    id: str, what: str, powers: Sequence[tuple[str, float]], data: xr.Dataset, judge: Judge, order: str = ""
) -> Iterator[Claim]:  # fmt: skip
    """The fitted exponent of each axis; an `order` (`max` or `min`) bounds it on one side, the other is ours."""
    for axis, power in powers:
        found, name = slope(data[f"{id}_{axis}"]), f"{id}.{axis}"
        text = f"exponent of {axis} in {what} ({axis} = {listed(data[axis].values.tolist())})"
        near = Expected(value=power, tolerance=NEAR)
        if order:
            low, high = (power if order == end else None for end in ("min", "max"))
            side = replace(near, value=None, min=low, max=high)
            yield judge(name, text, side, found, source="order", bar=EXPONENT_BAR)
            name += ".exact"
        yield judge(name, text, near, found, source="ours", bar=EXPONENT_BAR)


def nearly_all(shares: Array) -> Estimate:
    """The share of trainings whose own share of points is 0.99 or more; NaN where there is none."""
    n = shares.size
    return (
        proportion(int((shares >= 0.99).sum()), n, over="trainings") if n else mean_of([math.nan])
    )


@dataclass(frozen=True)
class Settings:
    """All settings of a sweep, axis by axis: rows of (d, k, n), and their times."""

    rows: tuple[tuple[int, int, int], ...]
    times: tuple[float, ...]
    axes: tuple[str, ...]

    @property
    def d(self) -> Array:
        """Their dimensions."""
        return np.array([row[0] for row in self.rows], dtype=float)[:, None]

    @property
    def k(self) -> Array:
        """Their clusters."""
        return np.array([row[1] for row in self.rows], dtype=float)[:, None]

    @property
    def n(self) -> Array:
        """Their training points."""
        return np.array([row[2] for row in self.rows], dtype=float)[:, None]

    def of(self, data: xr.Dataset, name: str) -> Array:
        """The variable in all of them, (setting, seed)."""
        parts = [data[f"{name}_{axis}"].transpose(axis, "seed").values for axis in self.axes]
        return np.concatenate(parts)

    def trainings(self, data: xr.Dataset, name: str, above: int = 0) -> Array:
        """The least of it in each training of more than `above` clusters, without those set aside (NaN).

        A setting stands in several axes, and its nets at several times: they are the same trainings.
        """
        values, rows = self.of(data, name), np.array(self.rows)
        used = [row for row in dict.fromkeys(self.rows) if row[1] > above]
        flat = np.ravel([values[(rows == row).all(1)].min(0) for row in used])
        return flat[np.isfinite(flat)]


def over_settings(
    config: Sweep, axes: Sequence[str] = ("d", "k", "n", "time"), power: float = 0.0
) -> Settings:
    """The settings in the order of `axes`; a setting with k clusters is looked at at time k^power."""
    rows, times = [], []
    base = {"d": config.d0, "k": config.k0, "n": config.n0}
    for axis in axes:
        for value in getattr(config, axis):
            at = base if axis == "time" else {**base, axis: value}
            rows.append((at["d"], at["k"], at["n"]))
            times.append(float(value) if axis == "time" else float(at["k"]) ** power)
    return Settings(tuple(rows), tuple(times), tuple(axes))


def swept(
    axes: dict[str, Sequence[float]],
    base: Cell,
    times: Callable[[Cell], Sequence[float]],
    reference: Callable[[Cell], float],
    measure: Callable[[Cell, Sequence[float], int], xr.Dataset],
    bench: Bench,
    seeds: Sequence[int],
) -> xr.Dataset:
    """Every variable `v` of `measure` as `v_d`, `v_k`, `v_n` (axis, seed), and `v_time` at the base.

    `measure` answers with a dimension "time", of times(cell); a sweep takes reference(cell), one of them.
    Settings that two axes share are computed once.
    """
    cells = {
        axis: [replace(base, **{axis: int(value)}) for value in values]
        for axis, values in axes.items()
    }
    distinct = list(dict.fromkeys([base, *(cell for row in cells.values() for cell in row)]))
    found = {
        (cell, seed): bench.part(
            f"{cell.name}.{seed}", partial(measure, cell, times(cell), seed)
        ).assign_coords(time=list(times(cell)))
        for cell, seed in bench.steps([(c, s) for s in seeds for c in distinct], "settings")
    }
    parts = [xr.concat([found[base, seed] for seed in seeds], "seed")]
    parts[0] = parts[0].rename({name: f"{name}_time" for name in parts[0].data_vars})
    for axis, row in cells.items():
        along = [
            xr.concat([found[c, seed].sel(time=reference(c), drop=True) for seed in seeds], "seed")
            for c in row
        ]
        data = xr.concat(along, axis).assign_coords({axis: list(axes[axis])})
        parts.append(data.rename({name: f"{name}_{axis}" for name in data.data_vars}))
    return xr.merge(parts).assign_coords(seed=list(seeds))
