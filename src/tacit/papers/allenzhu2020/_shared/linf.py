"""Attacks in linf that are quick enough for a curve."""

import math

from jaxtyping import Bool
from torch import Tensor

from tacit.attack import allenzhu2020_dense, broken_by, fgm, pgd
from tacit.data.sparse_coding import SparseCoding, SparseSamples
from tacit.nets.tensors import TensorNet

STEPS = 10
LINF = math.inf


def outlives(
    net: TensorNet, model: SparseCoding, samples: SparseSamples, radius: float, seed: int,
    held: Bool[Tensor, " n"] | None = None,
) -> Bool[Tensor, " n"]:  # fmt: skip
    """Which points (of those `held` at a smaller radius) the universal, FGM and short PGD leave unbroken.

    Where the many starts of `robust.withstood` break more, this is the larger share: it is for figures, and for
    models of which a claim says that they are broken.
    """
    x, y = samples.x, samples.y
    kept = (y * net(x) > 0) if held is None else held.clone()
    dense = allenzhu2020_dense(model.M, model.w_star).sign().to(x)
    kept &= ~broken_by(net, x, y, radius * dense, signed=True)
    for attack in ("fgm", "pgd"):
        left = kept.nonzero().squeeze(1)
        if not len(left):
            break
        if attack == "fgm":
            found = fgm(net, x[left], y[left], [radius], norm=LINF, seed=seed)
        else:
            found = pgd(
                net, x[left], y[left], [radius], norm=LINF, starts=("zero",), steps=STEPS, seed=seed
            )
        kept[left] = ~found.broken[0]
    return kept
