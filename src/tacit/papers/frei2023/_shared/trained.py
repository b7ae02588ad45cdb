"""Nets trained by the flow on clusters, as Theorems 3.1 and 4.2 speak of them; what they say of fresh points.

Both layers and the biases are trained, the loss is exp (or logistic), n = k ln^2 d. A net sees x through
<w_j, x> alone: with Q an orthonormal basis of span(w), Q'x is a Gaussian mixture too, with the centres Q'mu
and the same sigma, so fresh points are drawn there (`seen_by`): exact in law, and 1000 times cheaper once
neurons have merged.
"""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.linalg import span_axes
from tacit.base.shapes import Numbers, Rows
from tacit.data import (
    ClusterMixture,
    Samples,
    cluster_mixture,
    orthogonal_centres,
    sphere_centres,
)
from tacit.nets import TwoLayerNet
from tacit.papers._shared.assumptions import check_assumption, noise_term
from tacit.papers.frei2023._shared.settings import Means
from tacit.train import FlowWarning, Until, gradient_flow

SCOUT = 200  # points on which the alignment phase is scouted, where the start is small
SMALL = 1e-3
TOLERANCE = 0.02
PROOF_CONSTANT = 13.0  # Lemma D.9's chain with its numbers: (0.2/0.85 c + 12.3) sqrt(1.1), c <= 1/2


@dataclass(frozen=True)
class Setting:
    """A mixture, a start and a depth. `init` = 0: NTK-like."""

    D: int
    K: int
    K1: int
    sigma: float
    init: float
    log_loss: float
    h: int = 100
    loss: Literal["exp", "logistic"] = "exp"
    means: Means = "orthogonal"
    scout: bool = True

    @property
    def unit(self) -> float:
        """sqrt(d/k), what lengths are compared with."""
        return math.sqrt(self.D / self.K)

    @property
    def n(self) -> int:
        """k ln^2 d training points."""
        return math.ceil(self.K * math.log(self.D) ** 2)

    @property
    def named(self) -> tuple[str | int | float, ...]:
        """What the data depends on."""
        return self.D, self.K, self.K1, self.sigma, self.means


def mixture_for(setting: Setting, generator: torch.Generator) -> ClusterMixture:
    """Orthogonal means along the axes, or random ones."""
    root = math.sqrt(setting.D)
    if setting.means == "orthogonal":
        centres = orthogonal_centres(setting.K, setting.D, root)
    else:
        centres = sphere_centres(setting.K, setting.D, root, generator)
    return cluster_mixture(centres, setting.K1, setting.sigma)


def start(
    d: int, h: int, init: float, generator: torch.Generator, members: tuple[int, ...] = ()
) -> TwoLayerNet:
    """Gaussian weights of sd `init`; 0: w and b of sd 1/sqrt(d), v of sd 1/sqrt(h)."""
    first, second = (init, init) if init else (1 / math.sqrt(d), 1 / math.sqrt(h))
    w = first * torch.randn(*members, h, d, generator=generator, dtype=torch.float64)
    b = first * torch.randn(*members, h, generator=generator, dtype=torch.float64)
    v = second * torch.randn(*members, h, generator=generator, dtype=torch.float64)
    return TwoLayerNet(w, v, b)


def stacked(nets: list[TwoLayerNet]) -> TwoLayerNet:
    """The nets, which have biases, as one ensemble."""
    w, v, b = (torch.stack([getattr(net, name) for net in nets]) for name in ("w", "v", "b"))
    return TwoLayerNet(w, v, b)


def flowed(
    net: TwoLayerNet, samples: Samples, setting: Setting, device: str = "cpu"
) -> tuple[TwoLayerNet, float]:
    """The net at the end of its flow, merged, and its log-loss there."""
    return all_flowed(net, samples, setting, device)[0]


def all_flowed(
    net: TwoLayerNet, samples: Samples, setting: Setting, device: str = "cpu"
) -> list[tuple[TwoLayerNet, float]]:
    """Each member of an ensemble, with data of its own, at the end of its flow (followed in float32)."""
    with warnings.catch_warnings():
        # a start of few neurons may not fit every point: the log-loss tells, the theorems are silent
        warnings.simplefilter("ignore", FlowWarning)
        end = gradient_flow(
            net.to(device),
            samples.x.to(device, torch.float32),
            samples.y.to(device, torch.float32),
            until=Until(log_loss=setting.log_loss, evaluations=round(1000 - 10 * setting.log_loss)),
            loss=setting.loss,
            tolerance=TOLERANCE,
            scout=SCOUT if setting.scout and 0 < setting.init <= SMALL else 0,
        )
    found = [end.member(i) for i in range(len(end.ended))]
    return [
        (one.to("cpu"), float(ended.log_loss)) for one, ended in zip(found, end.ended, strict=True)
    ]


def seen_by(net: TwoLayerNet, mixture: ClusterMixture) -> tuple[TwoLayerNet, ClusterMixture]:
    """Net and mixture in coordinates of span(w): outputs on fresh points have the same law, centre by centre."""
    axes = span_axes(net.w)
    return replace(net, w=net.w @ axes), replace(mixture, centres=mixture.centres @ axes)


def flip_etas(net: TwoLayerNet, x: Rows, y: Numbers, along: Float[Tensor, " h"]) -> Numbers:
    """The least eta >= 0 at which y N(x - y eta u) <= 0, exactly; inf where there is none. `along` = <w_j, u>.

    On the ray N is piecewise linear: neuron j has the input z_j + eta s_j, s_j = -y <w_j, u>, and turns on or
    off at -z_j/s_j; there the slope of y N grows by y v_j |s_j|. The first zero lies in the first piece that
    ends at or below 0. Where all are off N is 0, whatever rounding has left.
    """
    inputs = x @ net.w.T if net.b is None else x @ net.w.T + net.b
    speed = -y.unsqueeze(1) * along
    weight = y.unsqueeze(1) * net.v
    turn = -inputs / speed
    turn = torch.where((turn > 0) & turn.isfinite(), turn, torch.inf)
    turn, order = turn.sort(1)
    turns = turn.isfinite()
    on = (inputs > 0) | ((inputs == 0) & (speed > 0))
    first = (weight * speed * on).sum(1, keepdim=True)
    jumps = torch.where(turns, (weight * speed.abs()).gather(1, order), 0.0)
    slope = torch.cat([first, first + jumps.cumsum(1)], 1)
    begin = torch.cat([torch.zeros_like(first), turn], 1)
    length = torch.where(turns, begin.diff(dim=1), 0.0)
    value = (weight * inputs.clamp_min(0)).sum(1, keepdim=True)
    value = torch.cat([value, value + (slope[:, :-1] * length).cumsum(1)], 1)
    heard = net.v != 0
    switched = torch.where(turns, (speed.sign() * heard).gather(1, order), 0.0)
    awake = (on & heard).sum(1, keepdim=True)
    value[torch.cat([awake, awake + switched.cumsum(1)], 1) == 0] = 0.0
    end = torch.cat([turn, torch.full_like(first, torch.inf)], 1)
    zero = torch.where((slope < 0) & begin.isfinite(), begin - value / slope, torch.inf)
    zero = torch.where(zero <= end, zero, torch.inf)
    # a piece that begins at or below 0 after one that ends above it: rounding, the zero is where it begins
    return torch.where((value <= 0) & begin.isfinite(), begin, zero).amin(1)


def proof_eta(mixture: ClusterMixture, d: int) -> float:
    """eta_1 + eta_2 of Lemma D.7, where the sign flips; NaN where the proof says nothing."""
    known, k = check_assumption(mixture, d), mixture.K
    rarer = min(mixture.K1, k - mixture.K1)
    return eta_in_numbers(d, k, known.overlap, noise_term(d, mixture.sd), rarer)


def eta_in_numbers(d: float, k: int, p: float, delta: float, rarer: int) -> float:
    """eta_1 + eta_2 in numbers alone:

    eta_1 = (2 Delta + p + 1) / E,  eta_2 = 3 (3d + Delta + 1) (1 - 2c') / (E (1 - 3c') c k)  (Appendix D),

    with E = d - Delta - kp - k Delta, c' = k (p + Delta + 1) / (d - Delta + 1) and `rarer` = c k, the clusters of
    the rarer class. NaN where E or 1 - 3c' is not positive: the proof then says nothing.
    """
    room = d - delta - k * p - k * delta
    c_prime = k * (p + delta + 1) / (d - delta + 1)
    if not (room > 0 and 0 < c_prime < 1 / 3):
        return math.nan
    one = (2 * delta + p + 1) / room
    two = 3 * (3 * d + delta + 1) * (1 - 2 * c_prime) / (room * (1 - 3 * c_prime) * rarer)
    return one + two
