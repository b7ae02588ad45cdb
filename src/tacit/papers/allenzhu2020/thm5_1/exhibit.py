r"""Theorem 5.1: clean training is accurate, features are far from their start, and one direction breaks the net.

The perturbation is -tau y M w*/||M w*||: it depends on the data alone. Accuracy along it is measured for a range
of tau, after the clean steps and after `times` as many (the theorem has every T_f up to d^(log d)/eta). Beside
the finite setting stand the paper's other data: no margin, spike noise, incoherent M, D < d, unequal |w*|.

**Footnote 8.** Biases that gradient descent trains itself (none grows by hand), with spikes of d E[xi''^2] = 1
and without any: by how much the bias of the neurons that fire has grown.

**Section 7.** Where labels are linear over a mixture of Gaussians clean training is robust already: the same
training with a bias that stays small, on x = mu_c + N(0, I/d), y = sign <u, x>.
The best robust accuracy at radius r is Pr(|<u, x>| > r).
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
import xarray as xr
from torch import Tensor

from tacit.attack import allenzhu2020_dense, broken_by, pgd
from tacit.base.threads import cores, side_by_side
from tacit.data import sphere_centres
from tacit.lab import Bench, Outcome
from tacit.measure.purification.angles import kept_of_start, overlap
from tacit.nets import SymmetricNet, symmetric_start
from tacit.papers.allenzhu2020._shared.measured import KINDS, alive, held, held_by, of_each
from tacit.papers.allenzhu2020._shared.nets import (
    fresh_points,
    placed,
    stages_of,
    start_of,
    world,
)
from tacit.papers.allenzhu2020._shared.robust import awake_part
from tacit.papers.allenzhu2020._shared.settings import Course, Finite, Leg, varied
from tacit.papers.allenzhu2020.thm5_1.claims import claims
from tacit.papers.allenzhu2020.thm5_1.figure import draw as draw
from tacit.papers.allenzhu2020.thm5_1.settings import CleanTraining
from tacit.train import train_symmetric

LARGE = 1.0  # d E[xi''^2] of footnote 8's spikes
GAUSSIANS, GAUSSIAN_D, GAUSSIAN_M, GAUSSIAN_RADIUS = 4, 50, 200, 0.05


def run(config: CleanTraining, bench: Bench) -> Outcome:
    """Train, break, train on; then the other settings."""
    seeds = bench.seeds(config.repeats)
    few, light = seeds[: config.few], config.light
    main = bench.part("clean", partial(followed, config, bench, seeds, {"clean": config.clean}))
    narrow = replace(config, m=config.long_m, batch=config.long_batch)
    longer = {"longer": config.longer(config.times)}
    far = bench.part("longer", partial(followed, narrow, bench, few, longer))
    others = [
        bench.part(
            f"variant-{name}",
            partial(
                held,
                varied(config if name == "printed" else light, name),
                bench,
                few,
                {name: light.clean},
                config.points,
            ),
        )
        for name in bench.steps(config.variants, "settings")
    ]
    biases = bench.part("biases", partial(grown_biases, config, bench, few))
    gaussian = bench.part("gaussian", partial(on_gaussians, config, bench, few))
    data = xr.merge(
        [
            main.isel(course=0, drop=True),
            far.isel(course=0, drop=True)
            .rename({"seed": "few"})
            .rename({name: f"longer_{name}" for name in far}),
            xr.concat(others, "course")
            .rename({"course": "variant", "seed": "few"})
            .rename({name: f"variant_{name}" for name in KINDS}),
            biases,
            gaussian,
        ]
    )
    return Outcome(data, claims(data, config, bench))


def followed(
    config: CleanTraining, bench: Bench, seeds: list[int], courses: dict[str, Course]
) -> xr.Dataset:
    """Points held, accuracy along M w* at each radius, and how far features are from their start."""
    read = partial(one_net, config, bench)
    dims = {**dict.fromkeys(KINDS, ("point",)), "curve": ("radius",)}
    data = of_each(config, bench, seeds, courses, read, dims)
    return data.assign_coords(radius=list(config.radii))


def one_net(
    config: CleanTraining, bench: Bench, name: str, seed: int, net: SymmetricNet
) -> dict[str, Tensor | float]:
    """What is read off one net."""
    model = world(config, bench, seed)
    samples = placed(fresh_points(config, bench, seed, config.points), bench.device)
    dense = allenzhu2020_dense(model.M, model.w_star).to(samples.x)
    part = awake_part(net.to(bench.device), samples.x, max(config.radii))
    curve = [
        1 - broken_by(part, samples.x, samples.y, r * dense, signed=True).double().mean()
        for r in config.radii
    ]
    start = start_of(config, bench, seed, 0, config.clean[0])
    seen = held_by(config, bench, config.points, 2, name, seed, net)
    return {
        **{kind: held.to(torch.int8) for kind, held in seen.items()},
        "curve": torch.stack(curve).cpu(),
        "kept": kept_of_start(start.w, net.w),
        "overlap": overlap(net.w),
        "alive": float(alive(config, bench, seed, net).double().mean()),
    }


def grown_biases(config: CleanTraining, bench: Bench, seeds: list[int]) -> xr.Dataset:
    """The mean bias of the neurons that fire over its start, where biases are trained, with spikes or none."""
    course = (Leg(config.clean_steps, config.clean_eta, bias_step=1.0, grown=False),)
    narrow = replace(config.light, m=config.long_m)
    rows = [
        of_each(
            here, bench, seeds, {name: course}, partial(bias_growth, here, bench, config.points), {}
        )
        for name, here in (("none", narrow), ("large", replace(narrow, spike=LARGE)))
    ]
    data = xr.concat(rows, "course")
    return data.rename({"course": "spikes", "seed": "few"})


def bias_growth(
    config: Finite, bench: Bench, points: int, _name: str, seed: int, net: SymmetricNet
) -> dict[str, float]:
    """Of one net."""
    start = start_of(config, bench, seed, 0, config.clean[0])
    who = alive(config, bench, seed, net)
    samples = fresh_points(config, bench, seed, points)
    right = ((samples.y * net(samples.x)) > 0).double().mean()
    grown = float(net.b[who].mean()) if bool(who.any()) else math.nan
    return {"bias_growth": grown / float(start.b[0]), "bias_accuracy": float(right)}


def on_gaussians(config: CleanTraining, bench: Bench, seeds: list[int]) -> xr.Dataset:
    """Robust accuracy of a clean net on a linearly labelled Gaussian mixture, next to the best there is."""
    found = side_by_side(partial(gaussian_net, config, bench), seeds, cores())
    names = ("gaussian_clean", "gaussian_robust", "gaussian_best")
    columns = zip(*found, strict=True)
    return xr.Dataset({n: ("few", list(c)) for n, c in zip(names, columns, strict=True)})


def gaussian_net(config: CleanTraining, bench: Bench, seed: int) -> tuple[float, float, float]:
    """One training there."""
    stream = bench.generator("allenzhu2020", "gaussians", seed=seed)
    d, m = GAUSSIAN_D, GAUSSIAN_M
    centres = sphere_centres(GAUSSIANS, d, 0.5, stream).to(torch.float32)
    u = torch.randn(d, generator=stream)
    u = u / u.norm()
    # points are not sparse here: no neuron would reach a bias that grows
    start = symmetric_start(d, m, config.init, config.init, stream, dtype=torch.float32)
    here = replace(config, d=d, m=m, D=0, growth=0.0)
    batches = gaussian_batches(centres, u, config.batch, stream)
    net = train_symmetric(start, batches, stages_of(here, config.clean[0])).net
    x, y = next(gaussian_batches(centres, u, config.points, stream))
    clean = (y * net(x)) > 0
    attacked = pgd(net, x, y, [GAUSSIAN_RADIUS], steps=20, seed=seed)
    best = (x @ u).abs() > GAUSSIAN_RADIUS
    shares = (clean, ~attacked.broken[0], best)
    one, two, three = (float(each.double().mean()) for each in shares)
    return one, two, three


def gaussian_batches(
    centres: Tensor, u: Tensor, batch: int, stream: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """x = mu_c + N(0, I/d), y = sign <u, x>, without end."""
    k, d = centres.shape
    while True:
        which = torch.randint(k, (batch,), generator=stream)
        x = centres[which] + torch.randn(batch, d, generator=stream) / math.sqrt(d)
        yield x, torch.where(x @ u >= 0, 1.0, -1.0)
