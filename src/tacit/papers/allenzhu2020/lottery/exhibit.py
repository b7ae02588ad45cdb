r"""Section 6.1 and Appendices B and C: which neuron wins which feature, step by step; Theorem D.1; Claim E.3.

At each moment the sets of Definitions B.1 and B.3 are formed, with sigma_w from the bias (Definition C.12; at the
start it is sigma_0) and the constants of Lemma B.2, and compared with those at the start. Theorem C.1's T_b =
d^2 sigma_0/(k eta), with constant 1, parts the phases; Theorem D.1 is read from the step on at which the bias has
reached its ceiling and stays (ours: T_e = d/(eta Xi_2 log d) is earlier here).
Shares of an empty set are left out.

**Claim E.3.** The negative gradient of neuron i along M w* is E[l' slope_i y <M w*, x>], over fresh points.

**The film** shows neurons in the dictionary, w*_j <w_i, M_j>, through lottery, mixture and purification.
"""

import math
from functools import partial

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tacit.attack import allenzhu2020_dense, broken_by
from tacit.base.threads import cores, side_by_side
from tacit.data.sparse_coding import SparseSamples
from tacit.lab import Bench, Outcome
from tacit.measure.purification.lottery import (
    Constants,
    Tickets,
    foretold,
    kept,
    late_tickets,
    lottery_constants,
    tickets,
    winners,
)
from tacit.measure.purification.mixture import coordinates
from tacit.nets import SymmetricNet
from tacit.papers.allenzhu2020._shared.measured import alive, regulariser, strongest
from tacit.papers.allenzhu2020._shared.nets import fresh_points, keep, start_of, through, world
from tacit.papers.allenzhu2020._shared.robust import accuracy
from tacit.papers.allenzhu2020.lottery.claims import claims
from tacit.papers.allenzhu2020.lottery.figure import animate as animate
from tacit.papers.allenzhu2020.lottery.figure import draw as draw
from tacit.papers.allenzhu2020.lottery.settings import Lottery
from tacit.train import Purified

FIRES = 1e-3  # mean slope on the points from which a neuron counts as one that fires


def run(config: Lottery, bench: Bench) -> Outcome:
    """Follow the trainings, and film the first."""
    seeds = bench.seeds(config.repeats)
    data = bench.part("trainings", partial(followed, config, bench, seeds))
    return Outcome(data, claims(data, config, bench))


def clean_course(config: Lottery, bench: Bench, seed: int, record: list[int]) -> Purified:
    """Clean training as all exhibits have it, with the nets on the way; they find its end in the store."""
    start = start_of(config, bench, seed, 0, config.clean[0])
    done = through(config, bench, seed, 0, config.clean, start, record)
    keep(config, bench, seed, config.clean, done)
    return done


def followed(config: Lottery, bench: Bench, seeds: list[int]) -> xr.Dataset:
    """Every training, and the film of the first."""

    def one(seed: int) -> tuple[xr.Dataset, xr.Dataset | None]:
        shown = clean_frames(config) if seed == seeds[0] else []
        done = clean_course(config, bench, seed, sorted({*config.moments, *shown}))
        film = filmed(config, bench, seed, done) if shown else None
        return one_training(config, bench, seed, done), film

    found, films = zip(
        *side_by_side(one, seeds, 1 if bench.device == "cuda" else cores()), strict=True
    )
    data: xr.Dataset = xr.concat(found, "seed")
    return xr.merge([data.assign_coords(seed=seeds), films[0]])


def seen_at(done: Purified, steps: list[int]) -> list[SymmetricNet]:
    """The nets after these steps."""
    return [shot.net.to("cpu") for shot in done.history if shot.step in steps]


def one_training(config: Lottery, bench: Bench, seed: int, done: Purified) -> xr.Dataset:
    """Sets, gradients and losses of one training."""
    model = world(config, bench, seed)
    moments = sorted(config.moments)
    constants = lottery_constants(config.m, config.d, config.gamma)
    nets = seen_at(done, moments)
    first = tickets(nets[0].w, model.M, model.w_star, config.init, constants)
    samples = fresh_points(config, bench, seed, config.points, "gradient")
    rows = [
        {
            **sets_at(config, model.M, model.w_star, net, first, constants, i == 0),
            **pull_at(samples, model.M @ model.w_star, net),
            "accuracy": accuracy(net, samples),
            "cost": regulariser(config, net),
        }
        for i, net in enumerate(nets)
    ]
    end = nets[-1]
    who = alive(config, bench, seed, end)
    won = winners(end.w, model.M, who)
    lean = winners(nets[0].w, model.M, w_star=model.w_star)
    middle = winners(nets[at_phase(config)].w, model.M)
    has = first.sure.any(1) & who
    return xr.Dataset(
        {
            **{name: ("moment", np.array([row[name] for row in rows])) for name in rows[0]},
            "loss": ("step", done.loss.cpu().numpy().astype(np.float32)),
            "sure_least": float(first.sure.sum(0).min()),
            "sure_mean": float(first.sure.sum(0).double().mean()),
            "pot_most": float(first.pot.sum(0).max()),
            "pot_mean": float(first.pot.sum(0).double().mean()),
            "foretold": float((lean == won)[who].double().mean()),
            "foretold_sure": foretold(first, won) if bool(has.any()) else math.nan,
            "sure_alive": float(has.sum() / max(int(first.sure.any(1).sum()), 1)),
            "kept_ticket": float((middle == won)[who].double().mean()),
            "alive": float(who.double().mean()),
        },
        coords={"moment": moments},
    )


def at_phase(config: Lottery) -> int:
    """The index of the last moment that is not after the first phase of step lengths."""
    moments = sorted(config.moments)
    return max(i for i, t in enumerate(moments) if t <= config.clean_steps[0])


def sets_at(
    config: Lottery,
    M: Tensor,
    w_star: Tensor,
    net: SymmetricNet,
    first: Tickets,
    constants: Constants,
    start: bool,
) -> dict[str, float]:
    """How the sets of this moment stand to those at the start."""
    bias = float(net.b.mean())
    scale = config.init if start else constants.scale(bias, config.d)
    xi = config.d ** (2 * config.gamma * config.excess)
    beta = 1 / math.sqrt(config.k * xi**10)
    now = first if start else tickets(net.w, M, w_star, scale, constants)
    late = late_tickets(net.w, M, w_star, scale, bias, config.k, beta, constants)
    share = share_kept
    return {
        "bias": bias,
        "sure": share(first.sure, now.sure),
        "pot": share(now.pot, first.pot),
        "ept": float(now.ept.double().mean()),
        "ept_late": float(late.ept.double().mean()),
        "ept_more": float(late.ept_more.double().mean()),
        "pot_late": share(late.pot, first.pot),
        "pot_between": share(now.pot, late.pot),
        "sure_late": share(first.sure, late.sure),
        "pot_count": float(now.pot.sum()),
        "sure_count": float(now.sure.sum()),
    }


def share_kept(before: Tensor, after: Tensor) -> float:
    """The share of `before` that is in `after`; NaN where it is empty."""
    return kept(before, after) if bool(before.any()) else math.nan


def pull_at(samples: SparseSamples, dense: Tensor, net: SymmetricNet) -> dict[str, float]:
    """Claim E.3: minus the gradient along M w* of the neurons that fire: its mean, and the share above 0."""
    x, y = samples.x, samples.y
    slope = net.slopes(x)
    pull = torch.sigmoid(-y * net(x)) * y * (x @ dense.to(x))
    along = (slope * pull.unsqueeze(1)).mean(0).double()
    fires = slope.mean(0) >= FIRES
    some = along[fires] if bool(fires.any()) else along
    return {"pull": float(some.mean()), "pulled": float((some > 0).double().mean())}


def clean_frames(config: Lottery) -> list[int]:
    """The steps of clean training that are pictured: as many of each step length, denser at the beginning."""
    total = sum(config.clean_steps)
    early = frame_steps(config.clean_steps[0], config.frames // 2)
    late = config.clean_steps[0] + frame_steps(total - config.clean_steps[0], config.frames // 2)
    return sorted({*early.tolist(), *late.tolist(), 0, total})


def filmed(config: Lottery, bench: Bench, seed: int, clean: Purified) -> xr.Dataset:
    """A few neurons of one training in the dictionary, from the start to the end of purification."""
    model, steps, total = world(config, bench, seed), clean_frames(config), sum(config.clean_steps)
    after = sorted(
        {*frame_steps(config.pure_steps, config.frames // 2).tolist(), config.pure_steps}
    )
    pure = through(config, bench, seed, 0, config.purified(), clean.net, after)
    keep(config, bench, seed, config.purified(), pure)
    nets = [*seen_at(clean, steps), *seen_at(pure, after)]
    samples = fresh_points(config, bench, seed, config.points)
    chosen = strongest(model, clean.net.to("cpu"), pure.net.to("cpu"), config.shown)
    sign = model.w_star.sign()
    table = np.stack([(coordinates(net.w[chosen], model.M) * sign).numpy() for net in nets])
    dense = config.tau * allenzhu2020_dense(model.M, model.w_star).to(samples.x)
    right = [accuracy(net, samples) for net in nets]
    held = [
        float((~broken_by(net, samples.x, samples.y, dense, signed=True)).double().mean())
        for net in nets
    ]
    return xr.Dataset(
        {
            "film": (("frame", "shown", "feature"), table.astype(np.float32)),
            "film_step": ("frame", [*steps, *(total + t for t in after)]),
            "film_bias": ("frame", [float(net.b.mean()) for net in nets]),
            "film_clean": ("frame", right),
            "film_robust": ("frame", held),
        }
    )


def frame_steps(last: int, count: int) -> np.ndarray:
    """At most `count` steps from 1 to the last, denser at the beginning."""
    return np.unique(np.round(last * np.linspace(0, 1, count + 1)[1:] ** 1.5).astype(int))
