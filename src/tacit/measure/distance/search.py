r"""The largest value of a sum of a_j relu(<u_j, x>)^p over the unit sphere, searched from many starts.

    x <- (x + t g) / |x + t g|,      g the gradient's part along the sphere

with a step t of Barzilai and Borwein for each start, taken back to a quarter where the value fell: the value
never falls, and no step is fixed, so that neither a tiny gradient (p = 3 far from every neuron) nor the end
is crossed blindly. What is found is a lower bound whatever the search did.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.linalg import unit_rows
from tacit.measure.distance.pieces import Pieces

STEPS = 120
RANDOM = 16
MOST_NEURONS, FEW_NEURONS = 64, 4  # neurons that give starts
LARGE = 200_000  # coordinates of all neurons: beyond, fewer starts
STILL = 1e-7  # the gradient along the sphere, in parts of the whole: nothing is left to climb
LONGEST = 1e3
TINY = 1e-300
ROUNDING = 1e-12  # a difference of unit rows that is no longer has no direction


def ascend(
    pieces: Pieces,
    a: Float[Tensor, " m"],
    x: Float[Tensor, "n r"],
    sign: Float[Tensor, " n"],
    steps: int = STEPS,
) -> Float[Tensor, "n r"]:
    """Every start moved uphill over the sphere on +h (sign 1) or -h (-1), h(x) = sum_j a_j relu(<u_j, x>)^p."""
    u, p, side = pieces.u, pieces.p, sign.unsqueeze(1)

    def look(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The value, the gradient's part along the sphere, and the length of the whole gradient."""
        z = (x @ u.T).clamp_min(0)
        slope = (z > 0).to(z.dtype) if p == 1 else z ** (p - 1)
        slope = slope * (side * a)
        gradient = p * (slope @ u)
        along = (gradient * x).sum(1, keepdim=True)
        return (slope * z).sum(1), gradient - along * x, gradient.norm(dim=1)

    value, g, whole = look(x)
    # a first step of this length turns x by about .3, whatever the scale of h
    step = 0.3 / whole.clamp_min(TINY)
    for _ in range(steps):
        if bool((g.norm(dim=1) <= STILL * whole).all()):
            break
        ahead = x + step.unsqueeze(1) * g
        ahead = ahead / ahead.norm(dim=1, keepdim=True)
        new, slope, size = look(ahead)
        up = new > value
        dx, dg = ahead - x, slope - g
        spectral = (dx * dx).sum(1) / (dx * dg).sum(1).abs().clamp_min(TINY)
        step = torch.where(up, torch.minimum(spectral, LONGEST / size.clamp_min(TINY)), step / 4)
        row = up.unsqueeze(1)
        x, g = torch.where(row, ahead, x), torch.where(row, slope, g)
        value, whole = torch.where(up, new, value), torch.where(up, size, whole)
    return x


def first_points(pieces: Pieces, generator: torch.Generator) -> Float[Tensor, "n r"]:
    """Starts: each neuron and its opposite, neurons of f against the nearest of F, sums, random points."""
    heaviest = pieces.f.abs() / pieces.f.abs().sum().clamp_min(TINY)
    heaviest = heaviest + pieces.F.abs() / pieces.F.abs().sum().clamp_min(TINY)
    most = FEW_NEURONS if pieces.u.numel() > LARGE else MOST_NEURONS
    order = heaviest.argsort(descending=True)[:most]
    u, f, F = pieces.u[order], pieces.f[order], pieces.F[order]
    points = [u, -u]
    mine, theirs = u[f != 0], u[F != 0]
    if len(mine) and len(theirs):
        partner = theirs[(mine @ theirs.T).argmax(1)]
        points += [mine - partner, partner - mine, mine + partner]
        # the maximum for one pair lies beside the two, on either side
        away, length = unit_rows(mine - partner)
        away = torch.where(length > ROUNDING, away, 0.0)
        points += [mine + 3 * away, partner - 3 * away, 2 * mine + away, 2 * partner - away]
    points += [(u[sign * (f - F) > 0]).sum(0, keepdim=True) for sign in (1, -1)]
    drawn = torch.randn(RANDOM, u.shape[1], generator=generator, dtype=u.dtype).to(u.device)
    x, length = unit_rows(torch.cat([*points, drawn]))
    return x[length.squeeze(1) > ROUNDING]
