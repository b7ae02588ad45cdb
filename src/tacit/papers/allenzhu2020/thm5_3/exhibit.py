r"""Theorem 5.3: adversarial training from the clean net (Algorithm 2), and what it changes.

Robustness is measured as the accuracy under the worst of the universal perturbation, FGM and 20-step PGD from
several starts, and certified at parts of tau: (b) speaks of any perturbation. The control trains
on cleanly for as many steps on the same batches. (a) holds for any attacker A in training: beside FGM there are
PGD, the universal perturbation (which is footnote 11's dense mixtures added to the training data), random ones,
and FGM of half the radius. Each net is tried with its own attacker (so is the clean net, `before`) and
with the worst of all.

`objective` is the clean one, with its regulariser (Sections 1 and 7: a robust net is as good by it).
`participation` is the number of features that the FGM perturbations of a net are spread over (Section 5.1).
"""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tacit.base.threads import cores, side_by_side, threads
from tacit.certify import symmetric_certified
from tacit.data.sparse_coding import SparseSamples
from tacit.lab import Bench, Outcome
from tacit.measure.purification.angles import moved_share
from tacit.measure.purification.density import participation
from tacit.nets import SymmetricNet
from tacit.papers.allenzhu2020._shared.measured import (
    KINDS,
    alive,
    dense_part,
    held,
    held_by,
    objective,
    of_each,
)
from tacit.papers.allenzhu2020._shared.nets import (
    attacker_of_leg,
    device_stream,
    fresh_points,
    placed,
    trained,
    world,
)
from tacit.papers.allenzhu2020._shared.robust import awake_part
from tacit.papers.allenzhu2020._shared.settings import Course, Finite, varied
from tacit.papers.allenzhu2020.thm5_3.claims import PARTS, claims
from tacit.papers.allenzhu2020.thm5_3.figure import draw as draw
from tacit.papers.allenzhu2020.thm5_3.settings import Adversarial
from tacit.train.purify.attackers import Around

POINTS_OF = dict.fromkeys((*KINDS, "own", "before"), ("point",))


def run(config: Adversarial, bench: Bench) -> Outcome:
    """Purify, compare with the control, certify; then other attackers, random starts and other settings."""
    seeds = bench.seeds(config.repeats)
    few, light, n = seeds[: config.few], config.light, config.points
    courses = {"clean": config.clean, "pure": config.purified()}
    parts = [bench.part("main", partial(purified, config, bench, seeds, courses, n))]
    control = {"control": config.control}
    found = bench.part("control", partial(purified, config, bench, few, control, n))
    parts.append(
        found.isel(course=0, drop=True)
        .rename({"seed": "few"})
        .rename({v: f"control_{v}" for v in found})
    )
    proved = bench.part(
        "certified", partial(certificates, config, bench, few, courses, config.certified)
    )
    parts.append(proved.rename({"seed": "few", "course": "stage"}))
    parts += without_margin(config, bench, few)
    others = {name: light.purified(name) for name in config.attackers}  # type: ignore[arg-type]
    trainings = {"clean": light.clean, "from_random": light.from_random, **others}
    beside = bench.part("attackers", partial(purified, light, bench, few, trainings, n))
    parts.append(
        beside.rename({"seed": "few", "course": "training"}).rename({v: f"other_{v}" for v in beside})
    )  # fmt: skip
    tables = []
    for name in bench.steps(config.variants, "settings"):
        here = varied(light, name)
        pair = {"clean": here.clean, "pure": here.purified()}
        found = bench.part(f"variant-{name}", partial(held, here, bench, few, pair, config.points))
        tables.append(found.expand_dims(variant=[name]))
    if tables:
        whole = xr.concat(tables, "variant").rename({"course": "stage", "seed": "few"})
        parts.append(whole.rename({kind: f"variant_{kind}" for kind in KINDS}))
    data = xr.merge(parts)
    return Outcome(data, claims(data, config, bench))


def without_margin(config: Adversarial, bench: Bench, seeds: list[int]) -> list[xr.Dataset]:
    """The table of the finite setting with z as the paper has it: `printed_...`, and certificates."""
    here = varied(config, "printed")
    pure = {"pure": here.purified()}
    whole = {"clean": here.clean, **pure, "control": here.control}
    found = bench.part("printed", partial(purified, here, bench, seeds, whole, config.points))
    found = found.rename({"seed": "few", "course": "net"})
    half = -(-config.certified // 2)
    proved = bench.part("certified-printed", partial(certificates, here, bench, seeds, pure, half))
    proved = proved.isel(course=0, drop=True)
    proved = proved.rename(
        {"seed": "few", "certified": "printed_certified", "tried": "printed_tried"}
    )
    return [found.rename({name: f"printed_{name}" for name in found}), proved]


def purified(
    config: Finite, bench: Bench, seeds: list[int], courses: dict[str, Course], points: int
) -> xr.Dataset:
    """What is read off each net, and how it differs from the clean one."""
    clean = trained(config, bench, seeds, {"clean": config.clean})
    before = {seed: clean["clean", seed] for seed in seeds}
    read = partial(one_net, config, bench, courses, before, points)
    return of_each(config, bench, seeds, courses, read, POINTS_OF)


def one_net(
    config: Finite,
    bench: Bench,
    courses: dict[str, Course],
    before: dict[int, SymmetricNet],
    points: int,
    name: str,
    seed: int,
    net: SymmetricNet,
) -> dict[str, Tensor | float]:
    """One of them."""
    model = world(config, bench, seed)
    samples = placed(fresh_points(config, bench, seed, points), bench.device)
    seen = held_by(config, bench, points, 2, name, seed, net)
    who = alive(config, bench, seed, net)
    dense, relative = dense_part(config, bench, seed, net, who)
    here, old = net.to(bench.device), before[seed].to(bench.device)
    part = awake_part(here, samples.x, config.tau)
    gradient = part.slopes(samples.x) @ part.w
    steep = gradient[gradient.norm(dim=1) > 0]
    return {
        **{kind: value.to(torch.int8) for kind, value in seen.items()},
        "own": own(config, bench, seed, courses[name], part, samples).to(torch.int8),
        "before": own(config, bench, seed, courses[name], old, samples).to(torch.int8),
        "dense": dense,
        "relative": relative,
        "objective": objective(config, here, samples),
        "moved": moved_share(before[seed].w, net.w) if name != "clean" else 0.0,
        "alive": float(who.double().mean()),
        "participation": float(participation(steep.cpu(), model.M).median()),
    }


def own(
    config: Finite,
    bench: Bench,
    seed: int,
    course: Course,
    net: SymmetricNet,
    samples: SparseSamples,
) -> Tensor:
    """The points that the net holds against the attacker of its last leg (FGM where that has none)."""
    leg = course[-1]
    leg = replace(leg, attacker="fgm", radius=config.tau) if leg.attacker == "none" else leg
    attacker = attacker_of_leg(leg, world(config, bench, seed))
    assert attacker is not None
    around = Around(net, samples.x, net.before(samples.x).T, True)
    delta = attacker.delta(around, samples.y, device_stream(bench, "own", seed=seed))
    return (samples.y * net(samples.x + delta) > 0).cpu()


def certificates(
    config: Adversarial, bench: Bench, seeds: list[int], courses: dict[str, Course], count: int
) -> xr.Dataset:
    """Which of the first `count` points are proved at each part of tau, (course, seed, part, tried)."""
    nets = trained(config, bench, seeds, courses)
    radii = torch.tensor([config.tau / part for part in PARTS], dtype=torch.float64)

    def one(key: tuple[str, int]) -> np.ndarray:
        samples = fresh_points(config, bench, key[1], config.points)
        x, y = (t[:count].double() for t in (samples.x, samples.y))
        with threads(cores() // len(nets)):  # nets are few where there are many cores
            return symmetric_certified(nets[key].double(), x, y, radii).numpy()

    found = np.stack(side_by_side(one, list(nets), cores())).astype(np.int8)
    shape = (len(courses), len(seeds), len(PARTS), count)
    return xr.Dataset(
        {"certified": (("course", "seed", "part", "tried"), found.reshape(shape))},
        coords={"course": list(courses), "seed": seeds, "part": list(PARTS)},
    )
