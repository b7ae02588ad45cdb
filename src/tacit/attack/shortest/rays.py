"""Attack along given rays: where does the sign first change?

The crossing is a point that breaks the classifier, so its distance bounds the robust radius from
above, for any classifier. Broken means y f <= 0.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

GRID = 64
BISECTION_STEPS = 50


def first_crossing(
    classifier: Callable[[Float[Tensor, "n D"]], Float[Tensor, " n"]],
    x: Float[Tensor, "n D"],
    y: Float[Tensor, " n"],
    direction: Float[Tensor, "n D"],
    reach: float = 1.0,
    *,
    ties_break: bool = True,
) -> Float[Tensor, " n"]:
    """The length of the shortest multiple t * direction, 0 <= t <= reach, found to break each point.

    A grid of t brackets the first change seen, bisection closes it; inf where nothing on the grid is
    broken. The length returned belongs to the broken side of the last bracket. With
    `ties_break=False` only y f < 0 is broken.
    """

    def breaks(t: float | Float[Tensor, "n 1"]) -> Bool[Tensor, " n"]:
        margin = y * classifier(x + t * direction)
        return margin <= 0 if ties_break else margin < 0

    good = torch.zeros(len(x), dtype=x.dtype, device=x.device)
    bad = torch.full_like(good, torch.inf)
    for t in torch.linspace(0, reach, GRID + 1).tolist():
        searching = torch.isinf(bad)
        broken = breaks(t)
        bad = torch.where(searching & broken, t, bad)
        good = torch.where(searching & ~broken, t, good)
    open_bracket = torch.isfinite(bad) & (bad > 0)
    for _ in range(BISECTION_STEPS):
        middle = torch.where(open_bracket, (good + bad) / 2, good)
        broken = breaks(middle.unsqueeze(1))
        bad = torch.where(open_bracket & broken, middle, bad)
        good = torch.where(open_bracket & ~broken, middle, good)
    # a ray of length zero that breaks nothing: inf, not inf * 0
    return torch.where(torch.isinf(bad), torch.inf, bad * direction.norm(dim=1))
