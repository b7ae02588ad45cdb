"""The finite setting, and the stretches that a training is made of (without torch)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar

from tacit.errors import CallError
from tacit.papers._shared.checks import check_at_least, check_positive, check_unique

Dictionary = Literal["unitary", "incoherent", "identity", "block"]
Star = Literal["signs", "unequal"]
AttackerName = Literal["none", "fgm", "pgd", "universal", "random", "weak"]
Begin = Literal["random", "features"]

WEAK = 0.5  # of the radius: FGM that a weak attacker plays
RADII = (0.02, 0.2)  # of tau, while adversarial training from random weights begins
RISE = 3  # sevenths of the second stretch at the second of them


@dataclass(frozen=True)
class Leg:
    """A stretch of training: steps and step lengths (they pair up), and who attacks within which ball.

    `begin` says where the first leg of a course starts: at random weights, or at w_i = sign(w*_i) M_i with the
    bias at its ceiling (Section 6.2). `bias_step` > 0 trains the biases besides (footnote 8); `grown`: whether
    they grow by hand.
    """

    steps: tuple[int, ...]
    eta: tuple[float, ...]
    attacker: AttackerName = "none"
    radius: float = 0.0
    norm: Literal["2", "inf"] = "2"
    begin: Begin = "random"
    bias_step: float = 0.0
    grown: bool = True

    def __post_init__(self) -> None:
        if len(self.steps) != len(self.eta) or not self.steps:
            raise CallError(f"{len(self.steps)} numbers of steps for {len(self.eta)} step lengths")


Course = tuple[Leg, ...]
"""Legs one after another: clean, then adversarial, say. Courses that begin alike share what they share."""


@dataclass(frozen=True)
class Finite:
    """The finite setting in which it all shows (d = 200, k = 6), as settings.

    x = M z + xi in dimension `d` with `D` features (0: d of them); |z| = 1 with probability `largest`/D, uniform
    on [1, `spread`]/sqrt(k) with probability `small` k/D (`constant` is Assumption 2.1's Omega, and
    its inverse the O); Gaussian noise `sigma_x`, spikes of size k^-0.501 with d E[xi''^2] = `spike`;
    z is redrawn until |<w*, z>| >= `margin` (ours; 0: as in the paper). `star`: w* of
    random signs, or of sizes between 1/2 and 3/2 besides. `m` neurons from N(0, `init`^2); the bias starts at
    `start_bias` init sqrt(ln d), grows by eta `growth`/d up to `ceiling`/sqrt(k), and the noise is `noise` times
    the bias. Fresh batches of `batch` points. Clean training: `clean_steps` of lengths `clean_eta`; adversarial
    training: `pure_steps` of `pure_eta` at radius `tau`.
    """

    d: int = 200
    k: float = 6.0
    m: int = 2000
    D: int = 0
    dictionary: Dictionary = "unitary"
    block: int = 4
    star: Star = "signs"
    largest: float = 2.0
    small: float = 0.4
    spread: float = 1.5
    constant: float = 0.1
    sigma_x: float = 0.4
    spike: float = 0.0
    margin: float = 1.0
    init: float = 0.003
    start_bias: float = 1.8
    growth: float = 0.23
    ceiling: float = 0.5
    noise: float = 0.15
    decay: float = 1e-4
    batch: int = 256
    clean_steps: tuple[int, ...] = (300, 700)
    clean_eta: tuple[float, ...] = (0.2, 1.5)
    pure_steps: int = 1000
    pure_eta: float = 1.4
    tau: float = 0.35

    def __post_init__(self) -> None:
        for name in (
            *(
                "d",
                "k",
                "m",
                "largest",
                "small",
                "constant",
                "init",
                "start_bias",
                "ceiling",
                "noise",
            ),
            *("batch", "pure_steps", "pure_eta", "tau"),
        ):
            check_positive(name, (getattr(self, name),))
        for name in ("D", "sigma_x", "spike", "margin", "growth", "decay"):
            check_at_least(name, (getattr(self, name),), 0)
        check_at_least("spread", (self.spread,), 1, "|z| is at least 1/sqrt(k) where it is not 0")
        if len(self.clean_steps) != len(self.clean_eta):
            raise CallError(
                f"clean_steps={self.clean_steps} with clean_eta={self.clean_eta}: they pair up"
            )
        check_positive("clean_steps", self.clean_steps)
        check_positive("clean_eta", self.clean_eta)

    @property
    def features(self) -> int:
        """The number of columns of M."""
        return self.D or self.d

    # the courses that several exhibits take

    @property
    def clean(self) -> Course:
        """Algorithm 1."""
        return (Leg(self.clean_steps, self.clean_eta),)

    @property
    def control(self) -> Course:
        """Clean, then clean for as many steps as adversarial training has, on the same batches."""
        return (*self.clean, Leg((self.pure_steps,), (self.pure_eta,)))

    def purified(
        self,
        attacker: AttackerName = "fgm",
        norm: Literal["2", "inf"] = "2",
        radius: float | None = None,
    ) -> Course:
        """Clean, then Algorithm 2 against that attacker."""
        far = self.tau if radius is None else radius
        return (*self.clean, Leg((self.pure_steps,), (self.pure_eta,), attacker, far, norm))

    def longer(self, times: int) -> Course:
        """Clean, and on with the last step length until `times` the steps."""
        return (*self.clean, Leg(((times - 1) * sum(self.clean_steps),), (self.clean_eta[-1],)))

    @property
    def from_random(self) -> Course:
        """Adversarial training from random weights, with the steps of both and a radius that rises (Section 8).

        At radius tau from the first step on nothing is learned: tau ||w0|| is more than any feature gives.
        """
        second, eta = sum(self.clean_steps[1:]), self.clean_eta[-1]
        rise = max(1, RISE * second // 7)
        return (
            Leg(self.clean_steps[:1], self.clean_eta[:1], "fgm", RADII[0] * self.tau),
            Leg((rise,), (eta,), "fgm", RADII[1] * self.tau),
            Leg((max(1, second - rise), self.pure_steps), (eta, self.pure_eta), "fgm", self.tau),
        )

    @property
    def from_pure(self) -> Course:
        """Clean training from w_i = M_i (Section 6.2)."""
        return (Leg(self.clean_steps, self.clean_eta, begin="features"),)


Setting = TypeVar("Setting", bound=Finite)
FIELDS = tuple(each.name for each in fields(Finite))


@dataclass(frozen=True)
class WithLight(Finite):
    """With a lighter setting for what is repeated a few times: fewer neurons, fewer and longer steps."""

    light_m: int = 1000
    light_steps: int = 600
    light_eta: float = 1.75

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("light_m", "light_steps", "light_eta"):
            check_positive(name, (getattr(self, name),))

    @property
    def light(self) -> Finite:
        """The lighter setting."""
        held = {name: getattr(self, name) for name in FIELDS}
        held |= {"m": self.light_m, "pure_steps": self.light_steps, "pure_eta": self.light_eta}
        return Finite(**held)


# a few seconds for one clean and adversarial training in all
SMOKE: dict[str, Any] = {
    "d": 40,
    "k": 4.0,
    "m": 200,
    "batch": 64,
    "init": 0.01,
    "clean_steps": (40, 80),
    "pure_steps": 60,
    "tau": 0.2,
}
SMOKE_LIGHT: dict[str, Any] = {"light_m": 150, "light_steps": 40}

# a feature is on ten times less often: batches and step lengths grow with d, and k as d^(1/3)
PAPER: dict[str, Any] = {
    "d": 2000,
    "k": 13.0,
    "m": 20_000,
    "batch": 2048,
    "clean_eta": (2.0, 15.0),
    "pure_eta": 14.0,
    "decay": 1e-5,
    "tau": 0.22,
}


def regime_of(config: Finite) -> str:
    """The regime of every claim: no size that one can run is inside."""
    line = "outside: k > d^(1/3) and k^2.5 < d/log d leave no k below d = 2e7"
    return f"{line}; |<w*, z>| >= {config.margin:g} is ours" if config.margin else line


# the settings beside the finite one: what changes, and the words of a table's row
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "printed": ("no margin, as the paper has it", {"margin": 0.0}),
    "spikes": ("spike noise of the Gaussian's energy", {"spike": 0.16}),
    "incoherent": ("incoherent M", {"dictionary": "incoherent"}),
    "fewer": ("D = d/2 features", {"D": -1}),
    "unequal": ("|w*| from 1/2 to 3/2", {"star": "unequal"}),
    "quiet": ("no noise, sigma_x = 0", {"sigma_x": 0.0}),
}


def varied(config: Setting, name: str) -> Setting:
    """The config in that setting."""
    changed = dict(VARIANTS[name][1])
    if changed.get("D") == -1:
        changed["D"] = config.d // 2
    return replace(config, **changed)


def check_variants(names: tuple[str, ...]) -> None:
    """Known settings, each once."""
    unknown = [name for name in names if name not in VARIANTS]
    if unknown:
        raise CallError(f"variants={','.join(unknown)}: some of {', '.join(VARIANTS)}")
    check_unique("variants", names)
