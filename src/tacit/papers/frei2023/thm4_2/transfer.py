"""Transfer: does what flips one net flip nets of other widths, starts, data, losses and training methods?

Three kinds of direction: z from the true means, one for all nets; the class sum sum_i y_i x_i of one net's own
training points; and the universal perturbation learned on one net (`attack.universal`). Every net has data and a
start of its own. Means are turned at random: Adam is not invariant under rotations.

The class sum has, with n points in k clusters and noise sigma, E<sum, u>/||u|| = n sqrt(d/k) and
E||sum||^2 = d n^2/k (1 + (1 + sigma^2) k/n), the k/n for the unequal counts of the clusters; so its cosine
with u is near 1/sqrt(1 + (1 + sigma^2) k/n), and it costs the inverse of that more than z.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from tacit.attack.universal import frei2023_z, learned_universal
from tacit.data import ClusterMixture, Samples, sqrt_d_mixture
from tacit.lab import Bench
from tacit.nets import TwoLayerNet
from tacit.papers._shared.assumptions import assumption_line, missing_line
from tacit.papers.frei2023._shared.trained import Setting, flip_etas, flowed, start
from tacit.papers.frei2023.thm4_2.settings import Flipped
from tacit.train import descend

WAYS = ("data", "learned")
GD_STEP, ADAM_STEP, STEPS = 25.0, 1e-3, 400  # a step of GD is GD_STEP/d
LEARN = 2.0  # times sqrt(d/k): the ball in which a universal perturbation is learned


@dataclass(frozen=True)
class Pupil:
    """A net of the transfer table. `covered`: it starts small and follows the flow or descent."""

    name: str
    method: Literal["flow", "GD", "Adam"] = "flow"
    loss: Literal["exp", "logistic"] = "exp"
    wider: float = 1.0  # times config.h
    ntk: bool = False

    @property
    def covered(self) -> bool:
        """Whether the prediction (class averages) applies."""
        return self.method != "Adam" and not self.ntk


PUPILS = (
    Pupil("flow"),
    Pupil("again"),
    Pupil("logistic", loss="logistic"),
    Pupil("narrow", wider=0.1),
    Pupil("wide", wider=10.0),
    Pupil("GD", method="GD", loss="logistic"),
    Pupil("Adam", method="Adam", loss="logistic"),
    Pupil("NTK-like", ntk=True),
)


def transfer(config: Flipped, bench: Bench, seed: int) -> xr.Dataset:
    """Median and 95% lengths over sqrt(d/k) by source and target; the share flipped by z of predicted length."""
    d, k = config.transfer, config.few
    unit = math.sqrt(d / k)
    mixture = sqrt_d_mixture(d, k, k // 2, 1.0, bench.generator("means", d, seed=seed))
    bench.tell(assumption_line(mixture))
    u = frei2023_z(mixture)
    test = mixture.sample(min(config.tests, 2000), bench.generator("transfer", d, seed=seed))
    pupils = [pupil for pupil in PUPILS if pupil.name in config.nets]
    taught = [teach(pupil, mixture, config, bench, seed) for pupil in pupils]
    nets = [net for net, _ in taught]
    ways = [directions(net, samples, unit) for net, samples in taught]
    by_z = np.array([lengths(net, test, u) for net in nets]) / unit
    found = [
        [[lengths(net, test, way[s]) for net in nets] for way in ways] for s in range(len(WAYS))
    ]
    predicted = predicted_length(d, k, 0.95)
    names = [pupil.name for pupil in pupils]
    return xr.Dataset(
        {
            "transfer_z": (("target", "quantile"), quantiles(by_z)),
            "transfer": (
                ("way", "source", "target", "quantile"),
                quantiles(np.array(found) / unit),
            ),
            "transfer_share": (("target",), (by_z <= predicted / unit).mean(-1)),
            "covered": (("target",), [pupil.covered for pupil in pupils]),
        },
        coords={"way": list(WAYS), "source": names, "target": names, "quantile": [0.5, 0.95]},
    )


def predicted_length(d: int, k: int, level: float) -> float:
    """sqrt(d/k) + sigma Phi^-1(level) at sigma = 1: the length that flips that share."""
    return math.sqrt(d / k) + float(torch.special.ndtri(torch.tensor(level, dtype=torch.float64)))


def data_cost(d: int, k: int) -> float:
    """1/cos of the class sum of n = k ln^2 d points with u, sigma = 1."""
    return math.sqrt(1 + 2 * k / math.ceil(k * math.log(d) ** 2))


def teach(
    pupil: Pupil, mixture: ClusterMixture, config: Flipped, bench: Bench, seed: int
) -> tuple[TwoLayerNet, Samples]:
    """Train one net on data of its own."""
    d = mixture.D
    setting = Setting(
        d, mixture.K, mixture.K1, mixture.sd, 0.0 if pupil.ntk else config.init, config.log_loss,
        max(round(config.h * pupil.wider), 8), pupil.loss,
    )  # fmt: skip
    stream = bench.generator("transfer", pupil.name, d, seed=seed)
    samples = mixture.sample(setting.n, stream)
    bench.tell(missing_line(samples, mixture))
    net = start(d, setting.h, setting.init, stream)
    if pupil.method == "flow":
        return flowed(net, samples, setting, bench.device)[0], samples
    adam = pupil.method == "Adam"
    found = descend(
        net,
        samples.x,
        samples.y,
        steps=STEPS,
        loss=pupil.loss,
        step=ADAM_STEP if adam else GD_STEP / d,
        optimizer="adam" if adam else "sgd",
    )
    return found.net, samples


def directions(net: TwoLayerNet, samples: Samples, unit: float) -> tuple[Float[Tensor, " d"], ...]:
    """The class sum of a net's data, and the universal perturbation learned on the net."""
    learned = learned_universal(net, samples.x, samples.y, LEARN * unit, signed=True, steps=30)
    return samples.y @ samples.x, learned


def lengths(net: TwoLayerNet, test: Samples, way: Float[Tensor, " d"]) -> np.ndarray:
    """||t way|| at which each point flips; inf where it never does."""
    unit = way / way.norm()
    return flip_etas(net, test.x, test.y, net.w @ unit).numpy()


def quantiles(found: np.ndarray) -> np.ndarray:
    """Median and 95% over the last axis, put last; by order statistics, for some may be inf."""
    levels = [0.5, 0.95]
    return np.moveaxis(np.quantile(found, levels, axis=-1, method="inverted_cdf"), 0, -1)
