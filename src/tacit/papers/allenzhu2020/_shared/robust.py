"""How a symmetric net fares on test points: clean, and against each attacker within one ball."""

from jaxtyping import Bool
from torch import Tensor

from tacit.attack import allenzhu2020_dense, broken_by, fgm, pgd
from tacit.attack.norms import known_norm
from tacit.base.shapes import Rows
from tacit.data.sparse_coding import SparseCoding, SparseSamples
from tacit.nets import SymmetricNet

STEPS = 20
STARTS = ("zero", "random", "gradient")
ASLEEP = 6.0  # sigmas below the threshold: all sleepers together add less to f than rounding

Seen = Bool[Tensor, " n"]


def withstood(
    net: SymmetricNet,
    model: SparseCoding,
    samples: SparseSamples,
    radius: float,
    *,
    seed: int,
    norm: float = 2,
) -> dict[str, Seen]:
    """Which points are right as they are (`clean`), after `universal`, after `fgm`, after both and PGD (`worst`).

    Universal is -radius y M w*/||M w*|| (Theorem 5.1(c); in linf the sign of it). PGD has three kinds of starts.
    A point counts as broken where y f <= 0. A point that one attack broke is not shown to the next.
    """
    net = awake_part(net, samples.x, radius, norm)
    x, y = samples.x, samples.y
    dense = allenzhu2020_dense(model.M, model.w_star).to(x)
    delta = radius * (dense if norm == 2 else dense.sign())
    clean = (y * net(x)) > 0
    universal = clean & ~broken_by(net, x, y, delta, signed=True)
    gradient = clean & ~fgm(net, x, y, [radius], norm=norm, seed=seed).broken[0]
    worst = universal & gradient
    left = worst.nonzero().squeeze(1)
    stepped = worst.clone()
    if len(left):
        found = pgd(
            net, x[left], y[left], [radius], norm=norm, starts=STARTS, steps=STEPS, seed=seed
        )
        stepped[left] = ~found.broken[0]
    return {"clean": clean, "universal": universal, "fgm": gradient, "worst": stepped}


def awake_part(net: SymmetricNet, x: Rows, radius: float, norm: float = 2) -> SymmetricNet:
    """The net without the neurons that no perturbation of these points within the ball can wake."""
    reach = net.before(x).abs().amax(0) + radius * known_norm(norm).dual(net.w)
    wakes = reach >= net.b - ASLEEP * net.sigma
    return SymmetricNet(net.w[wakes], net.b[wakes], net.sigma) if bool(wakes.any()) else net


def accuracy(net: SymmetricNet, samples: SparseSamples) -> float:
    """The share of points with y f > 0."""
    return float(((samples.y * net(samples.x)) > 0).double().mean())
