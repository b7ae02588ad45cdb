"""The cases of the remarks: mixtures of other noise, of means of several lengths, and of large sigma."""

import math
from dataclasses import dataclass, replace
from typing import cast

import torch

from tacit.data import ClusterMixture, Samples, sqrt_d_mixture
from tacit.data.clusters import NoiseShape
from tacit.papers.frei2023.remarks.settings import Remarks

LOUD = 2.0  # the anisotropic noise's variance along the means; the rest shares what is left of the trace d


@dataclass(frozen=True)
class Case:
    """`kind`: noise, norms or sigma; `name` in a figure; the mixture's numbers."""

    kind: str
    name: str
    d: int
    k: int
    sigma: float
    noise: str = "gaussian"
    spread: float = 0.0

    @property
    def n(self) -> int:
        """k ln^2 d."""
        return math.ceil(self.k * math.log(self.d) ** 2)


def cases(config: Remarks) -> list[Case]:
    """All of them, each remark's together."""
    return [
        *(Case("noise", noise, config.D, config.K, 1.0, noise) for noise in config.noises),
        *(
            Case("norms", f"{s:g}", config.at, config.many, config.still, spread=s)
            for s in config.spreads
        ),
        *(
            Case("sigma", f"{power:g}", d, config.K, d**power)
            for power in config.powers
            for d in config.dims
        ),
    ]


def mixture_of(case: Case) -> ClusterMixture:
    """Orthogonal means along the axes, where one coordinate of the noise meets each mean: nothing averages."""
    mixture = sqrt_d_mixture(case.d, case.k, case.k // 2, case.sigma)
    # long and short means in turn, so that both classes have both
    order = torch.linspace(-1, 1, case.k, dtype=torch.float64)
    lengths = 1 + case.spread * torch.cat([order[0::2], order[1::2]])
    shape = case.noise if case.noise in ("uniform", "laplace", "student") else "gaussian"
    centres = mixture.centres * lengths.unsqueeze(1)
    return replace(mixture, centres=centres, noise=cast(NoiseShape, shape))


def drawn(case: Case, mixture: ClusterMixture, n: int, generator: torch.Generator) -> Samples:
    """n points of the case.

    sphere: xi is uniform on the sphere of radius sigma sqrt(d). anisotropic: N(0, sigma^2 S), S diagonal with
    trace d and norm `LOUD`, which it has along the means.
    """
    samples = mixture.sample(n, generator)
    if case.noise not in ("sphere", "anisotropic"):
        return samples
    middle = mixture.centres[samples.z]
    xi = samples.x - middle
    if case.noise == "sphere":
        xi = xi * (case.sigma * math.sqrt(case.d) / xi.norm(dim=1, keepdim=True))
    else:
        along = (mixture.centres != 0).any(0)
        rest = (case.d - LOUD * case.k) / (case.d - case.k)
        xi = xi * torch.where(along, math.sqrt(LOUD), math.sqrt(rest))
    return replace(samples, x=middle + xi)
