"""The attacks, certificates and gradients of `table1_strict`, for the nets of one seed in one norm.

| attack   | what it is                                                                                      |
| -------- | ----------------------------------------------------------------------------------------------- |
| paper    | APGD on the cross-entropy from one random start, as Table 1 has it in linf and l2               |
| steps    | the same with more steps                                                                        |
| margin   | APGD on the margin, which does not saturate, from one random start                              |
| targeted | APGD on z_y - z_k for each other class k in turn                                                |
| restarts | APGD on the margin from random starts, down the gradient and towards the mean of other classes  |
| transfer | what broke the nets of other p, as it is and as starts of APGD on the margin                    |
| square   | the Square attack: queries alone (linf and l2, on few points)                                   |
| minimal  | the shortest perturbation found, without a radius to choose (linf and l2, on few points)        |
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from tacit.attack import apgd, cross_entropy, margin
from tacit.attack.ball.square import square
from tacit.attack.ball.task import Attacked
from tacit.attack.shortest.minimal import minimal
from tacit.attack.target import loss_and_gradient, target_of
from tacit.base.threads import cores, side_by_side
from tacit.certify.logits.radius import logits_certified, logits_radius
from tacit.nets import PolyReLUNet
from tacit.papers.min2024.images.nets import BOX
from tacit.papers.min2024.table1_strict.settings import Strict

GRADIENT = ("paper", "steps", "margin", "targeted", "restarts", "transfer")
ATTACKS = (*GRADIENT, "square", "minimal")
NORMS = {"linf": "inf", "l2": "2", "l1": "1"}
ONE_START = ("paper", "steps", "margin")
UNTRIED = -1  # in `broken`, beside 0 and 1


@dataclass(frozen=True)
class Trial:
    """Points, their layout, and one norm with its radii."""

    config: Strict
    x: Float[Tensor, "n D"]
    y: Int64[Tensor, " n"]
    means: Float[Tensor, "C D"]
    image: tuple[int, ...]
    kind: str
    seed: int

    @property
    def norm(self) -> str:
        """As attacks call it."""
        return NORMS[self.kind]

    @property
    def radii(self) -> tuple[float, ...]:
        """In ascending order."""
        return tuple(sorted(getattr(self.config, self.kind)))

    @property
    def workers(self) -> int:
        """Nets attacked at a time."""
        return 1 if self.x.is_cuda else cores()

    def few(self) -> tuple[Tensor, Tensor]:
        """The points of the costly methods."""
        return self.x[: self.config.few], self.y[: self.config.few]


def tried(trial: Trial, nets: dict[float, PolyReLUNet]) -> xr.Dataset:
    """Every attack on the net of each p.

    `broken` (attack, row, p, point) is 1, 0 or UNTRIED, `transferred` (source, row, p, point) what perturbations
    made for the net of another p (or its own) break as they are; rows are radii. For the norm: `far` (p, point),
    what is left at the far radius; `minimal` (p, few); `proved_radius` (p, sure), of l2; `proved` (row, p, sure).
    """
    ps = list(nets)
    own = side_by_side(lambda p: by_gradients(trial, nets[p]), ps, trial.workers)
    made = {p: found["paper"].delta for p, found in zip(ps, own, strict=True)}
    crossed = side_by_side(lambda p: by_transfer(trial, nets[p], p, made), ps, trial.workers)
    slow = side_by_side(lambda p: on_few(trial, nets[p]), ps, trial.workers)
    broken = np.full((len(ATTACKS), len(trial.radii), len(ps), len(trial.x)), UNTRIED, np.int8)
    for j in range(len(ps)):
        for name, found in (own[j] | {"transfer": crossed[j][1]}).items():
            # of one start alone: a larger radius would also search on from what a smaller one found
            by = found.alone if name in ONE_START else found.broken
            broken[ATTACKS.index(name), :, j] = by.cpu().numpy()
        for name in ("square", "minimal"):
            if name in slow[j]:
                broken[ATTACKS.index(name), :, j, : trial.config.few] = slow[j][name]
        foreign = np.arange(len(ps)) != j
        broken[ATTACKS.index("transfer"), :, j] |= crossed[j][0][foreign].any(0)
    transferred = np.stack([as_they_are for as_they_are, _ in crossed], 2).astype(np.int8)
    far = side_by_side(lambda p: far_left(trial, nets[p]), ps, trial.workers)
    return xr.Dataset(
        {
            "broken": (("attack", "row", "p", "point"), broken),
            "transferred": (("source", "row", "p", "point"), transferred),
            "proved": (("row", "p", "sure"), np.stack([s["proved"] for s in slow], 1)),
            "far": (("kind", "p", "point"), np.array([far])),
            "minimal": (("kind", "p", "few"), np.array([[s["shortest"] for s in slow]])),
            "proved_radius": (("kind", "p", "sure"), np.array([[s["radius"] for s in slow]])),
        },
        coords={
            "attack": list(ATTACKS),
            "p": ps,
            "source": ps,
            "kind": [trial.kind],
            "radius": ("row", list(trial.radii)),
            "norm": ("row", [trial.kind] * len(trial.radii)),
        },
    )


def by_gradients(trial: Trial, net: PolyReLUNet) -> dict[str, Attacked]:
    """The attacks that need nothing but the net."""
    config = trial.config
    many = ("random",) * config.restarts + ("gradient", "towards")
    run = partial(
        apgd, net, trial.x, trial.y, trial.radii,
        norm=trial.norm, box=BOX, means=trial.means, seed=trial.seed,
    )  # fmt: skip
    one = ("random",)
    return {
        "paper": run(loss=cross_entropy, starts=one, steps=config.steps),
        "steps": run(loss=cross_entropy, starts=one, steps=config.more_steps),
        "margin": run(loss=margin, starts=one, steps=config.steps),
        "targeted": run(loss="targeted", starts=one, steps=config.steps),
        "restarts": run(loss=margin, starts=many, steps=config.steps),
    }


def by_transfer(
    trial: Trial, net: PolyReLUNet, p: float, made: dict[float, Float[Tensor, "R n D"]]
) -> tuple[np.ndarray, Attacked]:
    """What perturbations made for each p break as they are (source, R, n), and APGD from those of others.

    The search for them ended when their own net was broken, so that they are no stronger than it took.
    """
    as_they_are = torch.stack(
        [torch.stack([broken(net, trial.x + d, trial.y) for d in delta]) for delta in made.values()]
    )
    # the largest radius' perturbation; smaller balls take its projection
    starts = [delta[-1] for source, delta in made.items() if source != p]
    found = apgd(
        net, trial.x, trial.y, trial.radii, norm=trial.norm, box=BOX, loss=margin,
        starts=starts, steps=trial.config.steps, seed=trial.seed,
    )  # fmt: skip
    return as_they_are.cpu().numpy(), found


def broken(net: PolyReLUNet, x: Float[Tensor, "n D"], y: Int64[Tensor, " n"]) -> Bool[Tensor, " n"]:
    """margin <= 0."""
    return margin(net(x), y) <= 0


def on_few(trial: Trial, net: PolyReLUNet) -> dict[str, np.ndarray]:
    """`proved` (R, sure), in l2 `radius` (sure,); but for l1 `square`, `minimal` (R, few), `shortest` (few,)."""
    x, y = trial.few()
    radii = torch.tensor(trial.radii, dtype=torch.float64, device=x.device)
    sure_x, sure_y = x[: trial.config.certified], y[: trial.config.certified]
    out = {
        "proved": torch.zeros(len(radii), len(sure_x), dtype=torch.int8),
        "radius": torch.full((len(sure_x),), torch.nan, dtype=torch.float64),
        "shortest": torch.full((len(x),), torch.nan, dtype=torch.float64),
    }
    if trial.kind in trial.config.proofs and trial.kind == "l2":
        out["radius"] = logits_radius(net, sure_x, sure_y, norm=trial.norm).lower
        out["proved"] = (out["radius"] > radii.unsqueeze(1)).to(torch.int8)
    elif trial.kind in trial.config.proofs:
        found = logits_certified(net, sure_x, sure_y, radii, norm=trial.norm)
        out["proved"] = found.to(torch.int8)
    if trial.kind != "l1":
        height, width, channels = trial.image
        out["square"] = square(
            net, x, y, trial.radii, image=(height, width, channels), norm=trial.norm, box=BOX,
            steps=trial.config.queries, seed=trial.seed,
        ).broken  # fmt: skip
        shortest = minimal(net, x, y, norm=trial.norm, box=BOX, seed=trial.seed).radius.double()
        out["shortest"] = shortest
        out["minimal"] = shortest <= radii.unsqueeze(1)
    return {name: value.cpu().numpy() for name, value in out.items()}


def far_left(trial: Trial, net: PolyReLUNet) -> np.ndarray:
    """Which points the paper's attack leaves at the far radius, from its own start there."""
    far = getattr(trial.config, f"far_{trial.kind}")
    found = apgd(
        net, trial.x, trial.y, [far], norm=trial.norm, box=BOX, loss=cross_entropy,
        starts=("random",), steps=trial.config.steps, seed=trial.seed,
    )  # fmt: skip
    left: np.ndarray = (~found.broken[0]).cpu().numpy().astype(np.int8)
    return left


def gradients(
    net: PolyReLUNet, x: Float[Tensor, "n D"], y: Int64[Tensor, " n"]
) -> dict[str, np.ndarray]:
    """The clean margin, the cross-entropy, and the lengths of both gradients as float32 has them, (n,) each."""
    target = target_of(net, tuple(x.shape[1:]))
    _, value, slope = loss_and_gradient(target, x, y, cross_entropy)
    _, apart, steady = loss_and_gradient(target, x, y, margin)
    found = {
        "margin": apart,
        "loss": -value,
        "slope": slope.norm(dim=1),
        "steady": steady.norm(dim=1),
    }
    found["flat"] = ~(slope != 0).any(1)
    return {name: t.double().cpu().numpy() for name, t in found.items()}


def rival_means(x: Float[Tensor, "n D"], y: Int64[Tensor, " n"]) -> Float[Tensor, "C D"]:
    """The mean of each class, 0, 1, ..."""
    return torch.stack([x[y == k].mean(0) for k in range(int(y.max()) + 1)])
