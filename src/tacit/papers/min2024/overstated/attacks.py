"""The attacks of `overstated`, weakest to strongest, on any net: what each breaks and what it costs.

| attack   | what it is                                                                        | looks a point  |
| -------- | --------------------------------------------------------------------------------- | -------------- |
| zero     | PGD from the point itself, 200 steps of radius/10 (min2024, Figure 2 (e))         | 200            |
| pgd20    | PGD on the cross-entropy from one random start, 20 steps (Madry et al. 2018)      | 20             |
| pgd50    | the same with 50 steps                                                            | 50             |
| apgd     | APGD on the cross-entropy from one random start (min2024, Table 1)                | steps          |
| margin   | APGD on the margin from one random start                                          | steps          |
| targeted | APGD on z_y - z_k for each other class k                                          | steps * others |
| square   | the Square attack: queries alone, on few points                                   | queries        |
| fab      | FAB towards each other class, for all radii at once, on few points                | steps * others |
| auto     | what apgd, targeted, fab or square breaks, on few points                          | their sum      |
| short    | APGD on the margin, few steps, from several starts: gradient, random, towards     | short * starts |
| long     | the same with all steps                                                           | steps * starts |

A *look* is one evaluation of the net at a point, with its gradient or (Square) without: the most that an attack
needs, for a point that is broken early costs less. `auto` is AutoAttack's set (Croce & Hein 2020); its APGD-T
aims by the difference of two logits in place of their ratio (DLR), and its FAB has the box of the data: the
published one has [0, 1], and leaves the ball on data that have no box (docs/guide/other-tools.md).

But for FAB all of them are tacit's: the cross-entropy's gradient is scaled before it is pulled back, the margin's
stands in where it is 0, and a row without any gradient jumps to a random point. Code without these remedies
breaks less: what is measured here is the least that such attacks overstate. What tools without them break is
counted where they are installed (`TOOLS`, on few points; on clusters at the first radius alone).

The *strict* attack breaks what any of tacit's breaks (the long one with what smaller radii found) and, on
clusters, what the shortest perturbation found breaks (`tacit.attack.minimal`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack import apgd, cross_entropy, fab, margin, pgd
from tacit.attack.ball.square import square
from tacit.attack.ball.task import Attacked
from tacit.attack.others import OTHERS, Logits, aside, installed, judged
from tacit.base.shapes import Labels, Rows
from tacit.nets import PolyReLUNet, TwoLayerNet
from tacit.papers.min2024.overstated.settings import Overstated

COMMON = ("zero", "pgd20", "pgd50", "apgd", "square", "fab", "auto")
ATTACKS = (
    "zero",
    "pgd20",
    "pgd50",
    "apgd",
    "margin",
    "targeted",
    "square",
    "fab",
    "auto",
    "short",
    "long",
)
TOOLS = {
    "foolbox_pgd": "foolbox PGD-50",
    "foolbox_fmn": "foolbox FMN-100",
    "art_apgd": "ART AutoPGD-CE",
}
"""Of `tacit.attack.others`."""
ALL = (*ATTACKS, *TOOLS)
ON_FEW = ("square", "fab", "auto", *TOOLS)
FOUR = ("apgd", "targeted", "fab", "square")  # AutoAttack's
UNTRIED = -1  # in `broken`, beside 0 and 1
ZERO_STEPS, ZERO_STEP = 200, 0.1  # of the released attack; the length in radii

Flags = np.ndarray


@dataclass(frozen=True)
class Ground:
    """Where nets are attacked: points, a norm, radii in any order, a box or none.

    `means` are the class means to start towards (None: the net's own landmarks), `image` the height, width and
    channels of a point, `few` the number of points for queries.
    """

    x: Rows
    y: Labels
    norm: str
    radii: tuple[float, ...]
    box: tuple[float, float] | None
    means: Float[Tensor, "C D"] | None
    image: tuple[int, int, int]
    few: int


def costs(config: Overstated, classes: int, starts: int) -> dict[str, int]:
    """Looks at the net for each point, where the nets have so many classes and `short` so many starts."""
    few = {
        "zero": ZERO_STEPS,
        "pgd20": 20,
        "pgd50": 50,
        "apgd": config.steps,
        "margin": config.steps,
    }
    few |= dict.fromkeys(("targeted", "fab"), config.steps * (classes - 1))
    few["square"] = config.queries
    few["auto"] = sum(few[name] for name in FOUR)
    few |= {"short": config.short * starts, "long": config.steps * starts}
    return few | {"foolbox_pgd": 50, "foolbox_fmn": 100, "art_apgd": 100}


def broken_by(
    net: PolyReLUNet | TwoLayerNet, ground: Ground, config: Overstated, seed: int
) -> tuple[Flags, Flags, int]:
    """What each attack breaks, (ALL, R, n) of 1, 0, UNTRIED; what all do, (R, n); the starts of `long`.

    Each radius counts alone, as if it were the only one asked for; to all together a larger ball also gives what
    was found in a smaller one.
    """
    order = np.argsort(ground.radii, kind="stable")
    back = np.argsort(order, kind="stable")
    common: dict[str, Any] = {"norm": ground.norm, "box": ground.box, "seed": seed}
    run: dict[str, Callable[..., Attacked]] = {
        "pgd": partial(pgd, net, ground.x, ground.y, ground.radii, **common),
        "apgd": partial(apgd, net, ground.x, ground.y, ground.radii, steps=config.steps, **common),
    }
    one, many = ("random",), ("gradient", "random", "towards")
    found = {
        "zero": run["pgd"](loss=cross_entropy, starts=("zero",), steps=ZERO_STEPS, step=ZERO_STEP),
        "pgd20": run["pgd"](loss=cross_entropy, starts=one, steps=20),
        "pgd50": run["pgd"](loss=cross_entropy, starts=one, steps=50),
        "apgd": run["apgd"](loss=cross_entropy, starts=one),
        "margin": run["apgd"](loss=margin, starts=one),
        "short": run["apgd"](starts=many, means=ground.means, steps=config.short),
        "long": run["apgd"](starts=many, means=ground.means),
    }
    # one output has one other class: to aim at it is to lower the margin
    aimed = not isinstance(net, TwoLayerNet)
    found["targeted"] = run["apgd"](loss="targeted", starts=one) if aimed else found["margin"]
    queried = square(
        net, ground.x[: ground.few], ground.y[: ground.few], ground.radii, image=ground.image,
        steps=config.queries, **common,
    )  # fmt: skip
    shape = (len(ALL), len(ground.radii), len(ground.x))
    broken = np.full(shape, UNTRIED, np.int8)
    for name, one_found in found.items():
        broken[ATTACKS.index(name)] = one_found.alone.cpu().numpy()[back]
    few = broken[:, :, : ground.few]
    few[ATTACKS.index("square")] = queried.alone.cpu().numpy()[back]
    shortest = fab(
        net, ground.x[: ground.few], ground.y[: ground.few], norm=ground.norm, box=ground.box,
        steps=config.steps,
    ).radius  # fmt: skip
    at = torch.tensor(ground.radii, dtype=shortest.dtype, device=shortest.device).unsqueeze(1)
    few[ATTACKS.index("fab")] = (shortest <= at).cpu().numpy()
    few[ATTACKS.index("auto")] = np.maximum.reduce([few[ATTACKS.index(name)] for name in FOUR])
    carried = torch.stack([one_found.broken for one_found in found.values()]).any(0)
    every = np.maximum((broken == 1).any(0), carried.cpu().numpy()[back])
    # the last name is that of the start at what a smaller radius found
    return broken, every.astype(np.int8), len(found["long"].starts) - 1


def by_tools(
    net: PolyReLUNet | TwoLayerNet, ground: Ground, balls: slice, seed: int, tools: Sequence[str]
) -> Flags:
    """What each of TOOLS breaks at some of the radii, (TOOLS, R, n): UNTRIED elsewhere and where it is missing.

    The tools see the net in float32; what they return is judged in its own type. One after the other, for they
    share their random numbers and where they print.
    """
    found = np.full((len(TOOLS), len(ground.radii), len(ground.x)), UNTRIED, np.int8)
    x, y = ground.x[: ground.few], ground.y[: ground.few]
    single = net.to(torch.float32, "cpu")
    label = (y > 0).long() if isinstance(net, TwoLayerNet) else y
    norm = float(ground.norm)
    for k, name in enumerate(TOOLS):
        for ball in range(len(ground.radii))[balls] if name in tools else ():
            radius = ground.radii[ball]
            with aside(seed):
                moved = OTHERS[TOOLS[name]](
                    Logits(single), x.float().cpu(), label.cpu(), radius, ground.box, norm
                ).to(x)
            broken, _ = judged(net, x, y, moved, radius, ground.box, norm)
            found[k, ball, : ground.few] = broken.cpu().numpy()
    return found


def missing() -> dict[str, str]:
    """The tools that are not installed, and their packages."""
    packages = {name: OTHERS[tool].package for name, tool in TOOLS.items()}
    return {name: package for name, package in packages.items() if installed(package) is None}
