"""Numbers that two ways of computing agree on: to rounding, never bit for bit.

Products of other shapes, batches of other sizes, another order of terms and another machine's kernels round
differently. Bits are asked for only where the same call meets the same shapes on one machine.
"""

from __future__ import annotations

import torch
from torch import Tensor


def rounding(terms: int, *of: Tensor) -> float:
    """The most that `terms` roundings of numbers as large as the largest in `of` can add up to."""
    largest = max((float(t.detach().abs().amax()) for t in of if t.numel()), default=0.0)
    return terms * torch.finfo(of[0].dtype).eps * largest


def same_numbers(one: Tensor, other: Tensor, terms: int) -> bool:
    """Whether both hold the same numbers, each the end of `terms` roundings; infinities must be the same."""
    finite = one.isfinite()
    if not torch.equal(finite, other.isfinite()) or not torch.equal(one[~finite], other[~finite]):
        return False
    a, b = one[finite], other[finite]
    return not len(a) or float((a - b).abs().amax()) <= rounding(terms, a, b)


def same_verdicts(one: Tensor, other: Tensor, margin: Tensor, terms: int) -> bool:
    """Whether two lists of verdicts `margin <= 0` agree wherever rounding cannot turn them."""
    return bool((margin[one != other].abs() <= rounding(terms, margin)).all())
