"""The settings and the entries of `li2025.fig2ab` and of the ablations `fig5` to `fig9` (without torch)."""

import math
from dataclasses import dataclass
from typing import Literal

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.lab.settings import as_text
from tacit.papers._shared.checks import (
    check_at_least,
    check_clusters,
    check_cosine,
    check_init,
    check_positive,
    check_unique,
)

CODE = "tacit.papers.li2025.matrices.exhibit"
DEAD = 0.5  # cos(mu_j, w_jr): neurons are near 0 or near 1
Varied = Literal["n", "eta", "init", "snr", "cosine"]
VARIED: tuple[Varied, ...] = ("n", "eta", "init", "snr", "cosine")


@dataclass(frozen=True)
class Setting:
    """One training of Section 6.1, at the paper's baseline (`init` is sigma_w = sigma_b).

    k clusters, the first k1 positive, in d dimensions; centres of norm `alpha` sqrt(d) with that pairwise
    `cosine`; noise `sigma`; n points; 2m neurons; T steps of size `eta`.
    """

    k: int = 10
    k1: int = 5
    d: int = 3072
    m: int = 5
    n: int = 1000
    alpha: float = 1.0
    sigma: float = 1.0
    cosine: float = 0.0
    eta: float = 1e-3
    init: float = 1e-5
    T: int = 100

    def __post_init__(self) -> None:
        check_init("init", (self.init,))
        check_clusters(self.k, self.k1, self.d, names=("k", "k1", "d"))
        for name in ("m", "n", "T"):
            check_at_least(name, (getattr(self, name),), 1)
        for name in ("alpha", "sigma", "eta", "init"):
            check_positive(name, (getattr(self, name),))
        check_cosine(self.cosine, self.k)

    @property
    def inside(self) -> bool:
        """Whether Assumption 4.3 and the T of Theorem 4.5 hold with every constant 1."""
        large = self.d >= self.k**10 and self.n >= self.k**7 and self.T * self.eta >= 1
        return large and self.eta <= self.d**-2 and self.init**2 <= self.eta * self.k**-5

    def averaged(self, n: float) -> tuple[float, float]:
        """Own- and other-class cosines of an average of n training points, meaned over the classes.

        sqrt(a/p) / r and (p c / sqrt(p a)) / r with a = 1 + (p-1) c, c the centres' cosine, for a class of p
        clusters; r^2 = 1 + k sigma^2 / (n alpha^2 a), since the mean of n/k noises has norm^2 k sigma^2 d / n.
        """
        own, other = 0.0, 0.0
        for p in (self.k1, self.k - self.k1):
            a = 1 + (p - 1) * self.cosine
            r = math.sqrt(1 + self.k * self.sigma**2 / (n * self.alpha**2 * a))
            own += math.sqrt(a / p) / r / 2
            other += self.cosine * math.sqrt(p / a) / r / 2
        return own, other

    @property
    def signs(self) -> dict[str, tuple[str, list[int]]]:
        """The classes of features and of neurons, as coordinates of a matrix."""
        features = [1] * self.k1 + [-1] * (self.k - self.k1)
        neurons = [1] * self.m + [-1] * self.m
        return {"feature_sign": ("feature", features), "neuron_sign": ("neuron", neurons)}


@dataclass(frozen=True)
class Labels(Setting):
    """2 labels, and k labels with `h` neurons for each, on `repeats` data sets."""

    h: tuple[int, ...] = (1, 3, 5)
    repeats: int = 6  # the fewest of which all can show a share of a half

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("h", self.h, 1)
        check_unique("h", self.h)
        check_at_least("repeats", (self.repeats,), 1)


@dataclass(frozen=True)
class Ablation:
    """The 2-label training of Section 6.1 on `repeats` data sets, at each value of the setting that `vary` names.

    `snr` is alpha/sigma (the centres' norm is snr sigma sqrt(d)), `init` is sigma_w = sigma_b. Only the varied
    setting may have several values.
    """

    vary: Varied
    k: int = 10
    k1: int = 5
    d: int = 3072
    m: int = 5
    n: tuple[int, ...] = (1000,)
    eta: tuple[float, ...] = (1e-3,)
    init: tuple[float, ...] = (1e-5,)
    snr: tuple[float, ...] = (1.0,)
    sigma: float = 1.0
    cosine: tuple[float, ...] = (0.0,)
    T: int = 100
    repeats: int = 4

    def __post_init__(self) -> None:
        for name in VARIED:
            values = getattr(self, name)
            if name != self.vary and len(values) > 1:
                raise CallError(
                    f"{name}={as_text(values)}: one value, since {self.vary} is varied here; "
                    f"for this, --set vary={name} and one value of {self.vary}"
                )
        check_unique(self.vary, self.values)
        check_positive("sigma", (self.sigma,))
        check_positive("snr", self.snr)
        check_at_least("repeats", (self.repeats,), 1)
        for value in self.values:
            self.at(value)  # checks the rest

    @property
    def values(self) -> tuple[float, ...]:
        """Of the varied setting."""
        found: tuple[float, ...] = getattr(self, self.vary)
        return found

    def at(self, value: float) -> Setting:
        """The training at one value of the varied setting."""
        fixed = {name: getattr(self, name)[0] for name in VARIED} | {self.vary: value}
        alpha = fixed.pop("snr") * self.sigma
        return Setting(
            self.k, self.k1, self.d, self.m, alpha=alpha, sigma=self.sigma, T=self.T, **fixed
        )


def _ablation(
    name: str, title: str, claim: str, smoke: Ablation, laptop: Ablation, paper: Ablation
) -> Exhibit:
    """The entry of one ablation."""
    return Exhibit(
        id=f"li2025.{name}",
        title=title,
        where=f"Appendix E.1, Figure {name.removeprefix('fig')}",
        claim=claim,
        scales={"smoke": smoke, "laptop": laptop, "paper": paper},
        code=CODE,
    )


ETAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
INITS = (1e-5, 1e-4, 1e-3, 1e-2)
SNRS = (0.5, 1.0, 2.0)
COSINES = (1e-5, 1e-3, 0.09)

EXHIBITS = (
    Exhibit(
        id="li2025.fig2ab",
        title="Two labels average the features, ten labels decouple them",
        where="Section 6.1, Figure 2 (a, b)",
        claim="a neuron of the 2-label net sees its class's five features alike, of the 10-label net one",
        scales={
            "smoke": Labels(k=4, k1=2, d=60, n=100, T=20, h=(1, 2), repeats=2),
            "laptop": Labels(),
            "paper": Labels(repeats=10),
        },
        code=CODE,
    ),
    _ablation(
        "fig5",
        "More data do not prevent averaging",
        "the weights average the features at every n",
        Ablation("n", k=4, k1=2, d=60, n=(40, 100, 200), T=20),
        Ablation("n", n=(1000, 2500, 6000), repeats=3),
        Ablation("n", n=(1000, 10_000, 50_000), repeats=3),
    ),
    _ablation(
        "fig6",
        "The learning rate and averaging",
        "a small learning rate is necessary for averaging",
        Ablation("eta", k=4, k1=2, d=60, n=(100,), eta=(0.01, 0.1, 10.0), T=20),
        Ablation("eta", eta=ETAS),
        Ablation("eta", eta=ETAS, repeats=10),
    ),
    _ablation(
        "fig7",
        "The size of the initial weights and averaging",
        "a small initialization is necessary for averaging",
        Ablation("init", k=4, k1=2, d=60, n=(100,), init=(1e-5, 1e-3, 0.1), T=20),
        Ablation("init", init=INITS),
        Ablation("init", init=INITS, repeats=10),
    ),
    _ablation(
        "fig8",
        "The signal-to-noise ratio and averaging",
        "the weights average the features at every ratio of order 1",
        Ablation("snr", k=4, k1=2, d=60, n=(100,), snr=SNRS, T=20),
        Ablation("snr", snr=SNRS),
        Ablation("snr", snr=SNRS, repeats=10),
    ),
    _ablation(
        "fig9",
        "Features that are not orthogonal",
        "the weights average nearly orthogonal features too",
        Ablation("cosine", k=4, k1=2, d=60, n=(100,), cosine=COSINES, T=20),
        Ablation("cosine", cosine=COSINES),
        Ablation("cosine", cosine=COSINES, repeats=10),
    ),
)
