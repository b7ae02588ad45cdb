"""Table 1: clean and robust accuracy on CIFAR-10 after clean training, and after adversarial training.

The l2 attackers are SmoothAdvPGD, whose robust and clean accuracies are those of noisy copies of the images (the
protocol of Salman et al. 2019): `noisy` is the share of an image's copies that are right before, `own` after the
attack that trained the net; `plain` is without noise. `strong` is the least share of `own` and of longer attacks
from random starts, `strict` what the strict attack leaves besides (`deep/strict.py`), for linf: every accuracy is
an upper bound, and the stronger ones are nearer the truth.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tacit.lab import Bench, Outcome
from tacit.measure.attacked import kept_right
from tacit.nn.layered import LayeredNet
from tacit.papers.allenzhu2020.deep.nets import ball_of, images_of, nets_of
from tacit.papers.allenzhu2020.deep.strict import FLAGS, strict
from tacit.papers.allenzhu2020.table1.claims import claims
from tacit.papers.allenzhu2020.table1.figure import draw as draw
from tacit.papers.allenzhu2020.table1.settings import Table


def run(config: Table, bench: Bench) -> Outcome:
    """Train, attack, attack harder, judge; a net whose rows are known is not trained again."""
    parts = [
        bench.part(f"net-{name}", partial(rows_of, config, name, bench))
        for name in bench.steps(config.nets, "nets, all attacks each")
    ]
    data = xr.concat(parts, "row")
    return Outcome(data, tuple(claims(data, config, bench)))


def rows_of(config: Table, name: str, bench: Bench) -> xr.Dataset:
    """The rows of one net: one for each attacker that it is tried with."""
    x, y = images_of(config).tested(config.points, bench.device)
    net = nets_of(config, bench, [name])[name]
    plain = kept_right(net, x, y)
    rows = [one_row(config, net, x, y, plain, each, bench.seed) for each in config.tried_by(name)]
    dims = {"strong": "few", "strict": "fewer", "flags": "flag"}
    return xr.Dataset(
        {
            key: (("row", dims.get(key, "point")), np.stack([row[key] for row in rows]))
            for key in rows[0]
        },
        coords={
            "net": ("row", [name] * len(rows)),
            "attacker": ("row", list(config.tried_by(name))),
            "flag": list(FLAGS),
        },
    )


def one_row(
    config: Table, net: LayeredNet, x: Tensor, y: Tensor, plain: Tensor, attacker: str, seed: int
) -> dict[str, np.ndarray]:
    """Shares of copies that are right, image by image; flags where the strict attack ran, else NaN."""
    ball = ball_of(attacker)
    noisy = kept_right(net, x, y, replace(ball, radius=0.0), seed=seed) if ball.sigma else plain
    own = kept_right(net, x, y, ball, seed=seed)
    longer = replace(
        ball, steps=config.strong_steps, step=2.5 / config.strong_steps, random_start=True
    )
    few = slice(0, config.strong)
    strong = kept_right(
        net, x[few], y[few], longer, starts=config.strong_starts, seed=seed, known=own[few]
    )
    left, flags = torch.full((config.strict,), torch.nan), dict.fromkeys(FLAGS, np.nan)
    if not ball.sigma:
        some = slice(0, config.strict)
        found = strict(
            net, x[some], y[some], ball, steps=config.strict_steps, restarts=config.restarts,
            queries=config.queries, seed=seed,
        )  # fmt: skip
        # images that only a weaker attack broke are broken, too
        weaker = own[some].clone()
        weaker[: config.strong] = torch.minimum(weaker[: config.strong], strong[: config.strict])
        left, flags = torch.minimum(weaker, found.left.float()), found.flags
    found_here = {"plain": plain, "noisy": noisy, "own": own, "strong": strong, "strict": left}
    values = {key: t.cpu().numpy().astype(np.float32) for key, t in found_here.items()}
    return {**values, "flags": np.array([flags[name] for name in FLAGS])}
