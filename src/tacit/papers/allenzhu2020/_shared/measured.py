"""What exhibits read off the nets of several courses and seeds, as labelled arrays."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
import xarray as xr
from torch import Tensor
from torch.nn.functional import softplus

from tacit.base.threads import cores, side_by_side
from tacit.data.sparse_coding import SparseCoding, SparseSamples
from tacit.lab import Bench
from tacit.measure.purification.lottery import firing
from tacit.measure.purification.mixture import coordinates, mixture
from tacit.nets import SymmetricNet
from tacit.papers.allenzhu2020._shared.nets import fresh_points, placed, trained, world
from tacit.papers.allenzhu2020._shared.robust import withstood
from tacit.papers.allenzhu2020._shared.settings import Course, Finite

KINDS = ("clean", "universal", "fgm", "worst")
ALIVE_ON = 10_000  # fresh points on which a neuron that lives fires at least once

Read = Callable[[str, int, SymmetricNet], Mapping[str, Tensor | float]]


def of_each(
    config: Finite, bench: Bench, seeds: Sequence[int], courses: Mapping[str, Course], read: Read,
    dims: Mapping[str, tuple[str, ...]], run: int = 0,
) -> xr.Dataset:  # fmt: skip
    """What `read` says of the net of each course and seed: variables (course, seed, and their `dims`)."""
    nets = trained(config, bench, seeds, courses, run)
    workers = 1 if bench.device == "cuda" else cores()
    found = side_by_side(lambda key: read(*key, nets[key]), list(nets), workers)
    shape = (len(courses), len(seeds))
    columns = {}
    for name in found[0]:
        values = np.stack([np.asarray(row[name]) for row in found])
        columns[name] = (
            ("course", "seed", *dims.get(name, ())),
            values.reshape(*shape, *values.shape[1:]),
        )
    return xr.Dataset(columns, coords={"course": list(courses), "seed": list(seeds)})


def held(
    config: Finite, bench: Bench, seeds: Sequence[int], courses: Mapping[str, Course], points: int,
    norm: float = 2,
) -> xr.Dataset:  # fmt: skip
    """Which fresh points each net holds, (course, seed, point) for each of KINDS, at radius tau."""
    read = partial(held_by, config, bench, points, norm)
    return of_each(config, bench, seeds, courses, read, dict.fromkeys(KINDS, ("point",))).astype(
        np.int8
    )


def held_by(
    config: Finite, bench: Bench, points: int, norm: float, _name: str, seed: int, net: SymmetricNet
) -> dict[str, Tensor]:
    """One net."""
    model = world(config, bench, seed)
    samples = placed(fresh_points(config, bench, seed, points), bench.device)
    found = withstood(net.to(bench.device), model, samples, config.tau, seed=seed, norm=norm)
    return {kind: held.cpu() for kind, held in found.items()}


def alive(config: Finite, bench: Bench, seed: int, net: SymmetricNet) -> Tensor:
    """The neurons that fire on some of 10,000 fresh points."""
    x = fresh_points(config, bench, seed, ALIVE_ON, "alive").x
    return firing(net.to(bench.device), x.to(bench.device)).cpu()


def dense_part(
    config: Finite, bench: Bench, seed: int, net: SymmetricNet, who: Tensor | None = None
) -> tuple[float, float]:
    """Over the neurons that fire: the mean mixture coefficient, and that over the mean of alpha.

    The second is free of the scale of the weights, which training changes.
    """
    model = world(config, bench, seed)
    who = alive(config, bench, seed, net) if who is None else who
    found = mixture(net.w[who], model.M, model.w_star)
    dense = float(found.dense.mean())
    return dense, dense / float(found.alpha.mean())


def strongest(
    model: SparseCoding,
    clean: SymmetricNet,
    pure: SymmetricNet,
    count: int,
    most: float = torch.inf,
) -> Tensor:
    """Neurons of different features with the most of it after purification, each the winner of it before too.

    Those come first whose mean mixture before was from k/d to `most` k/d of their alpha: many have far less.
    """
    a, b = (coordinates(net.w, model.M) * model.w_star.sign() for net in (clean, pure))
    won = b.argmax(1)
    before = a.gather(1, won.unsqueeze(1)).squeeze(1)
    unit = model.k / model.d
    mean = (a.sum(1) - before) / (a.shape[1] - 1) / before.clamp_min(1e-9) / unit
    rank = b.amax(1).clone()
    rank[(mean < 1) | (mean > most)] -= 1e3
    rank[a.argmax(1) != won] -= 1e6
    chosen: list[int] = []
    for i in rank.argsort(descending=True).tolist():
        if len(chosen) == count:
            break
        if all(int(won[i]) != int(won[j]) for j in chosen):
            chosen.append(i)
    return torch.tensor(chosen)


def objective(config: Finite, net: SymmetricNet, samples: SparseSamples) -> float:
    """The clean objective: mean log(1 + exp(-y f)) + decay sum_i (||w_i||^2/2 + ||w_i||^3/3)."""
    loss = float(softplus(-samples.y * net(samples.x)).double().mean())
    return loss + regulariser(config, net)


def regulariser(config: Finite, net: SymmetricNet) -> float:
    """decay sum_i (||w_i||^2/2 + ||w_i||^3/3)."""
    size = net.w.double().norm(dim=1)
    return config.decay * float((size**2 / 2 + size**3 / 3).sum())
