r"""Theorem 5.3: adversarial training from the clean net (Algorithm 2), and what it changes.

Robustness is measured as the accuracy under the worst of the universal perturbation, FGM and 20-step PGD from
several starts, and certified where the net has a certificate: (b) speaks of any perturbation. The control trains
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

from tacit.base.threads import cores, side_by_side
from tacit.lab import Bench, Outcome
from tacit.measure.purification.angles import moved_share
from tacit.measure.purification.density import participation
from tacit.nets import SymmetricNet
from tacit.papers.allenzhu2020._shared.measured import (
    KINDS,
    alive,
    can_certify,
    certified,
    dense_part,
    held,
    held_by,
    objective,
    of_each,
)
from tacit.papers.allenzhu2020._shared.nets import attacker_of_leg, fresh_points, trained, world
from tacit.papers.allenzhu2020._shared.robust import awake_part
from tacit.papers.allenzhu2020._shared.settings import Course, varied
from tacit.papers.allenzhu2020.thm5_3.claims import claims
from tacit.papers.allenzhu2020.thm5_3.figure import draw as draw
from tacit.papers.allenzhu2020.thm5_3.settings import Adversarial
from tacit.train.purify.attackers import Around

POINTS_OF = dict.fromkeys((*KINDS, "own", "before"), ("point",))


def run(config: Adversarial, bench: Bench) -> Outcome:
    """Purify, compare with the control, certify; then other attackers, random starts and other settings."""
    seeds = bench.seeds(config.repeats)
    few = seeds[: config.few]
    courses = {"clean": config.clean, "pure": config.purified(), "control": config.control}
    main = bench.part("main", partial(purified, config, bench, seeds, courses))
    parts = [main]
    if can_certify():
        some = {name: courses[name] for name in ("clean", "pure")}
        lower = bench.part("certified", partial(radii, config, bench, few, some))
        parts.append(lower.rename({"seed": "few", "course": "stage"}))
    others = {name: config.purified(name) for name in config.attackers}  # type: ignore[arg-type]
    trainings = {"from_random": config.from_random, **others}
    beside = bench.part("attackers", partial(purified, config, bench, few, trainings))
    parts.append(
        beside.rename({"seed": "few", "course": "training"}).rename({n: f"other_{n}" for n in beside})
    )  # fmt: skip
    tables = []
    for name in bench.steps(config.variants, "settings"):
        here = varied(config, name)
        pair = {"clean": here.clean, "pure": here.purified()}
        found = bench.part(f"variant-{name}", partial(held, here, bench, few, pair, config.points))
        tables.append(found.expand_dims(variant=[name]))
    if tables:
        whole = xr.concat(tables, "variant").rename({"course": "stage", "seed": "few"})
        parts.append(whole.rename({kind: f"variant_{kind}" for kind in KINDS}))
    data = xr.merge(parts)
    nets = trained(config, bench, seeds[:1], {"pure": config.purified()})
    saved = {"purified": nets["pure", seeds[0]].to(torch.float64)}
    return Outcome(data, claims(data, config, bench), saved)


def purified(
    config: Adversarial, bench: Bench, seeds: list[int], courses: dict[str, Course]
) -> xr.Dataset:
    """What is read off each net, and how it differs from the clean one."""
    clean = trained(config, bench, seeds, {"clean": config.clean})
    before = {seed: clean["clean", seed] for seed in seeds}
    read = partial(one_net, config, bench, courses, before)
    return of_each(config, bench, seeds, courses, read, POINTS_OF)


def one_net(
    config: Adversarial,
    bench: Bench,
    courses: dict[str, Course],
    before: dict[int, SymmetricNet],
    name: str,
    seed: int,
    net: SymmetricNet,
) -> dict[str, Tensor | float]:
    """One of them."""
    model, samples = world(config, bench, seed), fresh_points(config, bench, seed, config.points)
    seen = held_by(config, bench, config.points, 2, name, seed, net)
    who = alive(config, bench, seed, net)
    dense, relative = dense_part(config, bench, seed, net, who)
    part = awake_part(net, samples.x, config.tau)
    gradient = part.slopes(samples.x) @ part.w
    steep = gradient[gradient.norm(dim=1) > 0]
    return {
        **{kind: value.to(torch.int8) for kind, value in seen.items()},
        "own": own(config, bench, seed, courses[name], part).to(torch.int8),
        "before": own(config, bench, seed, courses[name], before[seed]).to(torch.int8),
        "dense": dense,
        "relative": relative,
        "objective": objective(config, net, samples),
        "moved": moved_share(before[seed].w, net.w) if name != "clean" else 0.0,
        "alive": float(who.double().mean()),
        "participation": float(participation(steep, model.M).median()),
    }


def own(config: Adversarial, bench: Bench, seed: int, course: Course, net: SymmetricNet) -> Tensor:
    """The points that the net holds against the attacker of its last leg (FGM where that has none)."""
    samples = fresh_points(config, bench, seed, config.points)
    leg = course[-1]
    leg = replace(leg, attacker="fgm", radius=config.tau) if leg.attacker == "none" else leg
    attacker = attacker_of_leg(leg, world(config, bench, seed))
    assert attacker is not None
    around = Around(net, samples.x, net.before(samples.x).T, True)
    delta = attacker.delta(around, samples.y, bench.generator("allenzhu2020", "own", seed=seed))
    return samples.y * net(samples.x + delta) > 0


def radii(
    config: Adversarial, bench: Bench, seeds: list[int], courses: dict[str, Course]
) -> xr.Dataset:
    """Certified lower ends of the radii of the first points, (course, seed, tried)."""
    nets = trained(config, bench, seeds, courses)

    def one(key: tuple[str, int]) -> np.ndarray:
        samples = fresh_points(config, bench, key[1], config.points)
        some = replace(
            samples, x=samples.x[: config.certified], y=samples.y[: config.certified],
            z=samples.z[: config.certified],
        )  # fmt: skip
        return certified(nets[key], some).numpy()

    found = np.stack(side_by_side(one, list(nets), cores()))
    shape = (len(courses), len(seeds), config.certified)
    return xr.Dataset(
        {"certified": (("course", "seed", "tried"), found.reshape(shape))},
        coords={"course": list(courses), "seed": seeds},
    )
