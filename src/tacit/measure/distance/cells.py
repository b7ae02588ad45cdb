r"""sup |h| over a sphere of few dimensions by branch and bound, for h(x) = sum_j a_j relu(<u_j, x>)^p with p
>= 2.

Let x* be a maximiser of h over the unit sphere. h is homogeneous, so its gradient there is p h(x*) x*, and
relu(.)^p is convex: along any segment in the ball the second derivative of h is at least -L,

    L = p (p-1) * the largest eigenvalue of sum_{a_j < 0} |a_j| u_j u_j'.

For x on the sphere with |x - x*| <= d, <x*, x - x*> >= -d^2/2, so

    h(x) >= h(x*) (1 - p d^2/2) - L d^2/2        and       h(x*) <= (h(x) + L d^2/2) / (1 - p d^2/2).

The sphere is covered by the cells of a cube's faces seen from the centre. A cell of half side s is within d = s
sqrt(r-1) of its middle (both have norm >= 1, and shrinking to the sphere brings them no farther apart). Cells
whose bound is below the best value found are dropped, the others are cut in 2^(r-1). -h likewise.
"""

import itertools

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.measure.distance.pieces import Pieces

MOST_DIMENSIONS = 3
TIGHT = 1e-6  # in parts of the supremum
MOST_CELLS = 200_000
FIRST_CUTS = 5  # halvings before the first look: p d^2 / 2 < 1 is needed, for p up to LARGEST_P
HALVINGS = 24
LARGEST_P = 100


def cell_bound(pieces: Pieces, c: float) -> float | None:
    """An upper bound of |c f - F| on the sphere; None where the span or p asks for another method."""
    r = pieces.u.shape[1]
    if not 1 <= r <= MOST_DIMENSIONS or not 2 <= pieces.p <= LARGEST_P:
        return None
    a = pieces.weights(c)
    return max(_largest(pieces.u, sign * a, pieces.p) for sign in (1, -1))


def _largest(u: Float[Tensor, "m r"], a: Float[Tensor, " m"], p: float) -> float:
    """A bound of the largest value of h over the sphere (0 where h is negative everywhere)."""
    r = u.shape[1]
    down = a < 0
    concave = (a[down].abs().unsqueeze(1) * u[down]).T @ u[down]
    L = p * (p - 1) * float(torch.linalg.matrix_norm(concave, ord=2))
    side = 2.0**-FIRST_CUTS
    cells, best, bound = _faces(r, side, u), 0.0, torch.zeros(0)
    for _ in range(HALVINGS):
        x = cells / cells.norm(dim=1, keepdim=True)
        value = ((x @ u.T).clamp_min(0) ** p) @ a
        best = max(best, float(value.max()))
        square = side**2 * (r - 1)
        bound = (value + L * square / 2) / (1 - p * square / 2)
        open_ = bound > best * (1 + TIGHT)
        if not bool(open_.any()):
            return best * (1 + TIGHT)
        cells, bound = cells[open_], bound[open_]
        if len(cells) * 2 ** (r - 1) > MOST_CELLS or r == 1:
            break
        side /= 2
        cells = _cut(cells, side)
    return max(best, float(bound.max()))


def _faces(r: int, side: float, like: Tensor) -> Float[Tensor, "n r"]:
    """Middles of the cells of half side `side` on the 2 r faces of the cube [-1, 1]^r."""
    line = torch.arange(-1 + side, 1, 2 * side, dtype=like.dtype, device=like.device)
    flat = torch.cartesian_prod(*([line] * (r - 1))).reshape(-1, r - 1) if r > 1 else line[:1, None]
    faces = []
    for axis, end in itertools.product(range(r), (1.0, -1.0)):
        on = flat.new_full((len(flat), 1), end)
        rest = flat[:, : r - 1] if r > 1 else flat[:, :0]
        faces.append(torch.cat([rest[:, :axis], on, rest[:, axis:]], 1))
    return torch.cat(faces)


def _cut(cells: Float[Tensor, "n r"], side: float) -> Float[Tensor, "k r"]:
    """Each cell in 2^(r-1): moves by +-side along its face (the coordinate that is 1 or -1 stays)."""
    r = cells.shape[1]
    axis = cells.abs().argmax(1)
    moves = torch.tensor(list(itertools.product((-side, side), repeat=r - 1)), dtype=cells.dtype)
    moves = moves.to(cells.device)
    parts = []
    for k in range(r):
        here = cells[axis == k]
        step = torch.cat([moves[:, :k], moves.new_zeros(len(moves), 1), moves[:, k:]], 1)
        parts.append((here.unsqueeze(1) + step).reshape(-1, r))
    return torch.cat(parts)
