"""The sparse coding model of a seed, and nets trained on it: made once, kept in the store, shared by exhibits.

A net is named by its setting, its seed, its course (a tuple of legs) and its `run`: nets of other runs see the
same dictionary from another start and on other batches. Courses that begin alike share the net up to there. The
k-th leg of every course sees the same batches, so that adversarial training and its control differ in the attack
alone. Trained in float32, each on one core.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial

import torch
from torch import Tensor

from tacit.attack import allenzhu2020_dense
from tacit.base.identity import identity_of
from tacit.base.threads import cores, side_by_side
from tacit.data.sparse_coding import (
    Assumption21,
    SparseCoding,
    SparseSamples,
    Spike,
    block_dictionary,
    checked_model,
    identity_dictionary,
    incoherent_dictionary,
    too_dense,
    two_level_law,
    unitary_dictionary,
)
from tacit.lab import Bench
from tacit.lab.models.shelf import Recipe
from tacit.lab.models.store import Checkpoint, Made
from tacit.nets import SymmetricNet, symmetric_start
from tacit.papers.allenzhu2020._shared.settings import FIELDS, WEAK, Course, Finite, Leg
from tacit.train import (
    Attacker,
    Purified,
    Stage,
    fgm_attacker,
    pgd_attacker,
    random_attacker,
    train_symmetric,
    universal_attacker,
)

PGD_STEPS = 3  # of the attacker in training
WORLDS = 8  # that are kept
SPIKES = 10.0  # what Section 2's E[xi''^2] = O(sigma_x^2/d) is read as: footnote 8 needs 6.25

Key = tuple[Course, int, int]
"""Course, seed and run of a net."""


def world(config: Finite, bench: Bench, seed: int) -> SparseCoding:
    """M, w* and the laws of that seed; not to be written into, for all who ask for it share it."""
    d, D = config.d, config.features
    stream = bench.generator("allenzhu2020", "dictionary", config.dictionary, d, D, seed=seed)
    return world_of(
        Finite(**{name: getattr(config, name) for name in WORLD}), stream.initial_seed()
    )


# what of a setting the world depends on; the rest says how nets are trained on it
WORLD = (
    *("d", "k", "D", "dictionary", "block", "star", "largest", "small", "spread"),
    *("constant", "sigma_x", "spike", "margin"),
)


@lru_cache(maxsize=WORLDS)
def world_of(config: Finite, state: int) -> SparseCoding:
    """The world that a random stream of this state draws; at d = 2000 it takes a second, and many ask for it."""
    d, D, stream = config.d, config.features, torch.Generator().manual_seed(state)
    if config.dictionary == "unitary":
        M = unitary_dictionary(d, D, stream)
    elif config.dictionary == "incoherent":
        M = incoherent_dictionary(d, D, stream)
    elif config.dictionary == "block":
        M = block_dictionary(d, config.block, stream)[:, :D]
    else:
        M = identity_dictionary(d, D)
    star = torch.where(torch.rand(D, generator=stream, dtype=torch.float64) < 0.5, -1.0, 1.0)
    sizes = 0.5 + torch.rand(D, generator=stream, dtype=torch.float64)
    law = two_level_law(
        D, config.k, largest=config.largest, small=config.small, spread=config.spread
    )
    size = config.k**-0.501
    spike = Spike(size, config.spike / (d * size**2)) if config.spike else None
    w_star = star * sizes if config.star == "unequal" else star
    constants = Assumption21(config.constant, 1 / config.constant, config.constant, config.constant)
    # threads call this: `trained` tells of a k that is too large
    return checked_model(
        M, law, config.k, w_star, config.sigma_x, spike, SPIKES, config.margin, constants
    )


def fresh_points(
    config: Finite, bench: Bench, seed: int, n: int, *names: str | int
) -> SparseSamples:
    """n fresh points of the world of that seed, in float32; other `names` are other points."""
    stream = bench.generator("allenzhu2020", "test", *names, seed=seed)
    return world(config, bench, seed).sample(n, stream, dtype=torch.float32)


def placed(samples: SparseSamples, device: str) -> SparseSamples:
    """The samples on that device."""
    return SparseSamples(samples.x.to(device), samples.y.to(device), samples.z.to(device))


def device_stream(bench: Bench, *names: str | int, seed: int) -> torch.Generator:
    """The random stream of that name on the device: drawing on the host would take longer than training."""
    drawn = bench.generator("allenzhu2020", *names, seed=seed)
    if bench.device == "cpu":
        return drawn
    return torch.Generator(bench.device).manual_seed(drawn.initial_seed())


def start_of(config: Finite, bench: Bench, seed: int, run: int, leg: Leg) -> SymmetricNet:
    """The net before its first leg."""
    if leg.begin == "features":
        model = world(config, bench, seed)
        w = (model.w_star.sign() * model.M).T.to(torch.float32).contiguous()
        bias = config.ceiling / math.sqrt(config.k)
        return SymmetricNet(w, w.new_full((len(w),), bias), config.noise * bias)
    stream = bench.generator("allenzhu2020", "start", config.d, config.m, run, seed=seed)
    bias = config.start_bias * config.init * math.sqrt(math.log(config.d))
    return symmetric_start(config.d, config.m, config.init, bias, stream, dtype=torch.float32)


def stages_of(config: Finite, leg: Leg) -> list[Stage]:
    """A leg in the words of `train_symmetric`."""
    return [
        Stage(steps, eta, decay=config.decay, noise=config.noise,
              growth=config.growth / config.d if leg.grown else 0.0,
              ceiling=config.ceiling / math.sqrt(config.k), bias_step=leg.bias_step)
        for steps, eta in zip(leg.steps, leg.eta, strict=True)
    ]  # fmt: skip


def attacker_of_leg(leg: Leg, model: SparseCoding) -> Attacker | None:
    """Who attacks in that leg."""
    norm: float = math.inf if leg.norm == "inf" else 2
    if leg.attacker == "fgm":
        return fgm_attacker(leg.radius, norm)
    if leg.attacker == "weak":
        return fgm_attacker(WEAK * leg.radius, norm)
    if leg.attacker == "pgd":
        return pgd_attacker(leg.radius, norm, steps=PGD_STEPS)
    if leg.attacker == "random":
        return random_attacker(leg.radius, norm)
    if leg.attacker == "universal":
        dense = allenzhu2020_dense(model.M, model.w_star)
        return universal_attacker(dense.sign() if norm == math.inf else dense, leg.radius, norm)
    return None


def batches_of(
    config: Finite, bench: Bench, seed: int, run: int, place: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Fresh batches for the leg at that place of a course, on the bench's device."""
    drawn = device_stream(bench, "batches", place, run, seed=seed)
    return world(config, bench, seed).stream(config.batch, drawn, dtype=torch.float32)


def through(
    config: Finite, bench: Bench, seed: int, run: int, course: Course, net: SymmetricNet,
    record: Collection[int] = (),
) -> Purified:  # fmt: skip
    """The last leg of the course, from the net before it, with the nets after the steps in `record`."""
    leg, place = course[-1], len(course) - 1
    return train_symmetric(
        net.to(bench.device),
        batches_of(config, bench, seed, run, place),
        stages_of(config, leg),
        attacker=attacker_of_leg(leg, world(config, bench, seed)),
        generator=device_stream(bench, "attacker", place, run, seed=seed),
        record=record,
    )


def keep(config: Finite, bench: Bench, seed: int, course: Course, done: Purified) -> None:
    """Put the net of run 0 that `through` has trained with a record in the store, where others look for it."""
    key, code = (course, seed, 0), identity_of(through, start_of)
    made = {key: Made(done.net.to("cpu"))}
    bench.models.made({key: recipe_of(config, key, code)}, lambda _todo, _checkpoint: made)


def recipe_of(config: Finite, key: Key, code: str) -> Recipe:
    """What makes a net."""
    course, seed, run = key
    return {
        "training": "purify",
        "paper": "allenzhu2020",
        **{name: getattr(config, name) for name in FIELDS if name not in COURSE_ALONE},
        "legs": [asdict(leg) for leg in course],
        "seed": seed,
        "run": run,
        "code": code,
    }


# these say which courses there are (a leg has its own), or what is refused
COURSE_ALONE = ("constant", "clean_steps", "clean_eta", "pure_steps", "pure_eta", "tau")


def trained(
    config: Finite, bench: Bench, seeds: Sequence[int], courses: Mapping[str, Course], run: int = 0
) -> dict[tuple[str, int], SymmetricNet]:
    """The net at the end of each course, for each seed; those of one depth are trained side by side."""
    bench.tell(too_dense(config.d, config.k))
    found: dict[Key, SymmetricNet] = {}
    code = identity_of(through, start_of)
    for depth in range(1, max(map(len, courses.values())) + 1):
        # a dictionary has each prefix once, in order
        prefixes = {course[:depth]: None for course in courses.values() if len(course) >= depth}
        keys: list[Key] = [(prefix, seed, run) for prefix in prefixes for seed in seeds]
        recipes = {key: recipe_of(config, key, code) for key in keys}
        made = bench.models.made(recipes, partial(last_legs, config, bench, dict(found)))
        found |= {key: one.net for key, one in made.items()}
    return {
        (name, seed): found[course, seed, run] for name, course in courses.items() for seed in seeds
    }


def last_legs(
    config: Finite,
    bench: Bench,
    known: Mapping[Key, SymmetricNet],
    todo: list[Key],
    _checkpoint: Checkpoint,
) -> dict[Key, Made]:
    """Train the last leg of each; `known` has the nets before it."""
    with bench.progress.track("trainings", len(todo)) as advance:

        def one(key: Key) -> Made:
            course, seed, run = key
            net = known.get((course[:-1], seed, run))
            if net is None:
                net = start_of(config, bench, seed, run, course[0])
            made = Made(through(config, bench, seed, run, course, net).net.to("cpu"))
            advance()
            return made

        workers = 1 if bench.device == "cuda" else cores()
        return dict(zip(todo, side_by_side(one, todo, workers), strict=True))
