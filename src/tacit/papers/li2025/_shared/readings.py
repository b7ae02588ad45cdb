"""What Sections 5.1 and 5.2 and Appendices B.1 and C.2 speak of, read off the coefficients of either net."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from tacit.errors import RunError
from tacit.papers.li2025._shared.coefficients import (
    ClassDynamics,
    ClassSeen,
    Net,
    Seen,
    State,
)

D = TypeVar("D")
BLOCK = 64  # margins beside all smaller ones at a time: such a block stays in the cache


def reading_of(problem: Net, at: State, seen: Seen | ClassSeen, t: float) -> dict[str, float]:
    """What Lemmas 5.3, 5.5, B.7 and C.10 speak of, at step t."""
    own, near = problem.own, problem.own_clusters
    q_hat = estimated(problem, at)
    log_pull = problem.log_pull(seen)  # type: ignore[arg-type]
    return {
        "t": float(t),
        "lam": float(at.lam[near].mean()),
        "lam_least": float(at.lam[near].min()),
        "lam_most": float(at.lam[near].max()),
        "lam_other": float(at.lam[~near].abs().max()),
        "sigma_least": float(at.sigma[own].min()),
        "sigma_most": float(at.sigma[own].max()),
        "sigma_other": float(at.sigma[~own].abs().max()),
        "bias": float(at.b.abs().max()),
        "margin": float(seen.margin.mean()),
        "gap": float(seen.margin.max() - seen.margin.min()),
        "gap_hat": float(q_hat.max() - q_hat.min()),
        "gap_hat_same": within(problem, q_hat),
        "ratio": float((log_pull.max() - log_pull.min()).exp()),
        "ratio_same": math.exp(within(problem, log_pull)),
        "foreign": foreign_of(problem, at),
        **from_sigma(problem, at, seen, log_pull),
        "own_active": float(seen.active[own].double().mean()),
        "other_active": float(seen.active[~own].double().mean()),
    }


def from_sigma(
    problem: Net, at: State, seen: Seen | ClassSeen, log_pull: Float[Tensor, " n"]
) -> dict[str, float]:
    """Lemmas B.20, B.21, C.20, C.21: how far margin and derivative leave their bounds by an own sigma alone.

    q <= (2n/k) sigma + `q_above`, q >= (n/2k) sigma - `q_below`, and ln |l'| is at most `pull_above` above
    -(n/2k) sigma, and `pull_below` (or more) above -(2n/k) sigma.
    """
    own, share = problem.own, len(problem.z) / problem.z.shape[1]
    sigma = at.sigma * share
    ends = {
        "q_above": (seen.margin - 2 * sigma)[own].max(),
        "q_below": (sigma / 2 - seen.margin)[own].max(),
        "pull_above": (log_pull + sigma / 2)[own].max(),
        "pull_below": (log_pull + 2 * sigma)[own].min(),
    }
    return {name: float(value) for name, value in ends.items()}


def foreign_of(problem: Net, at: State) -> float:
    """The largest output of another label at a point (Lemma C.17)."""
    output = problem.before(at).clamp_min(0).unflatten(0, (-1, problem.width)).mean(1)
    return float(output.masked_fill(problem.own[:: problem.width], 0.0).max())


def estimated(problem: Net, at: State) -> Float[Tensor, " n"]:
    """q_hat of each point, the mean over its neurons of lambda and sigma (before Lemmas B.7 and C.10)."""
    mine = problem.own.to(at.sigma)
    return ((at.lam @ problem.z.T + at.sigma) * mine).sum(0) / problem.width


def within(problem: Net, values: Float[Tensor, " n"]) -> float:
    """The largest gap between two points of one cluster."""
    rows = torch.where(problem.z.T > 0, values, torch.nan)
    spread = [row[~row.isnan()] for row in rows]
    return max(float(row.max() - row.min()) for row in spread if len(row))


def approximations(problem: Net, at: State) -> dict[str, float]:
    """What the lemmas before auto-balance bound by multiples of eps (B.11 to B.14, C.11 to C.14), largest.

    `feature` |<w, mu_j> - lambda_j|, `noise` |<w, xi_i> - sigma_i|, `point` |<w, x_i> - lambda - sigma|,
    `margin` |q - q_hat|.
    """
    assert problem.span is not None, "products alone have no vectors"
    centres = problem.span.centres
    gram = centres @ centres.T
    aside = problem.features * problem.feature_size.unsqueeze(1) - gram @ problem.z.T
    along = problem.span.w @ centres.T + at.lam @ (gram / problem.feature_size.unsqueeze(1))
    along = along + (at.sigma / problem.noise_size) @ aside.T
    before, seen = problem.before(at), problem.seen(at)
    there = before - at.b.unsqueeze(1)
    towards = there - along @ problem.z.T
    return {
        "error_feature": float((along - at.lam).abs().max()),
        "error_noise": float((towards - at.sigma).abs().max()),
        "error_point": float((there - at.lam @ problem.z.T - at.sigma).abs().max()),
        "error_margin": float((seen.margin - estimated(problem, at)).abs().max()),
        **ordered(problem, seen),
    }


def ordered(problem: Net, seen: Seen | ClassSeen) -> dict[str, float]:
    """Lemmas B.6 and C.18, over all pairs with q_i >= q_j, with r = ln(l'_j/l'_i) and D = q_i - q_j.

    `order_above`: the largest r - D. `order_below`: the largest of D/2 - r (2 labels), ln((e^D + k - 1)/k) - r.
    `order_mended` (2 labels): of D/2 - r where q_i + q_j >= 0.
    """
    q, by_q = seen.margin.sort()
    pull, k = problem.log_pull(seen)[by_q], problem.z.shape[1]  # type: ignore[arg-type]
    two = not isinstance(problem, ClassDynamics)
    above, below, mended = (q.new_tensor(-math.inf) for _ in range(3))
    for some, pulls in zip(q.split(BLOCK), pull.split(BLOCK), strict=True):
        upto = int(torch.searchsorted(q, some[-1], right=True))  # no larger margin, and ties
        gap = some.unsqueeze(1) - q[:upto]
        rise = pull[:upto] - pulls.unsqueeze(1)
        low = (
            gap / 2 if two else torch.logaddexp(gap, gap.new_tensor(math.log(k - 1))) - math.log(k)
        )
        above = torch.maximum(above, torch.where(gap >= 0, rise - gap, -math.inf).max())
        missed = torch.where(gap >= 0, low - rise, -math.inf)
        below = torch.maximum(below, missed.max())
        if two:
            positive = some.unsqueeze(1) + q[:upto] >= 0
            mended = torch.maximum(mended, torch.where(positive, missed, -math.inf).max())
    found = {"order_above": float(above), "order_below": float(below)}
    return found | {"order_mended": float(mended)} if two else found


def parts_away(problem: Net, at: State) -> dict[str, float]:
    """Lemmas B.25, C.25: L1 to L4 and all of sqrt(d) ||w - lambda sum mu_j/||mu_j||^2||.

    Each is the largest of a neuron. lambda is one own coefficient, as the lemmas have it.
    """
    assert problem.span is not None, "products alone have no vectors"
    near, root = problem.own_clusters, problem.feature_size[0].sqrt()
    lam = at.lam[near][0]
    goal = lam * near.to(at.lam) @ (problem.span.centres / problem.feature_size.unsqueeze(1))
    noise = (at.sigma / problem.noise_size) @ problem.span.noise
    rows = {
        "L1": root * problem.span.w.norm(dim=1),
        "L2": torch.where(near, at.lam - lam, 0.0).norm(dim=1),
        "L3": torch.where(near, 0.0, at.lam).norm(dim=1),
        "L4": root * noise.norm(dim=1),
        "away": root * (problem.rebuilt(at) - goal).norm(dim=1),
    }
    return {name: float(row.max()) for name, row in rows.items()}


def watched(
    problem: Net,
    course: Iterator[tuple[float, State, Seen | ClassSeen]],
    until: float,
    looks: float,
) -> tuple[xr.Dataset, State]:
    """Readings of a course at `looks` moments a decade of t, from 1 to `until`; and the last coefficients."""
    last = math.log10(until)
    due = iter(10 ** np.linspace(0, last, round(looks * last) + 1) * (1 - 1e-6))
    wanted, end, rows = next(due), problem.zero(), []
    for t, at, seen in course:
        end = at
        if t >= wanted:
            row = reading_of(problem, at, seen, t)
            if problem.span is not None:
                row |= approximations(problem, at) | parts_away(problem, at)
            rows.append(row)
            wanted = next(due, math.inf)
    data = xr.Dataset({name: ("time", np.array([row[name] for row in rows])) for name in rows[0]})
    count = problem.z.sum(0)
    ratios = (problem.noise_size.max() / problem.noise_size.min(), count.max() / count.min())
    data["uneven"] = ((), float(max(ratios)) - 1)
    return data, end


def begun(problem: Net) -> bool:
    """Whether each neuron is activated at the start by a point of each cluster of its label.

    Lemmas B.1 and C.5 take it from Propositions A.12 and C.3, which promise more: n/(3km^2) and n/(3k^3h^2)
    points.
    """
    active = (problem.before(problem.zero()) >= 0).to(problem.z) @ problem.z
    return bool((active[problem.own_clusters] > 0).all())


def first_begun(draws: Iterable[D], net: Callable[[D], Net]) -> tuple[int, D]:
    """The first draw whose net has `begun`, after how many that had not; an error where none has."""
    for redrawn, draw in enumerate(draws):
        problem = net(draw)
        if begun(problem):
            return redrawn, draw
    n, neurons = len(problem.z), len(problem.first)
    raise RunError(
        f"in {redrawn + 1} draws not all of {neurons} neurons had an active point of their label at the start; "
        f"raise n={n}, or take fewer neurons"
    )


def apart(w: Tensor, actual: Tensor) -> float:
    """The largest relative distance of a neuron."""
    return float(((w - actual).norm(dim=1) / actual.norm(dim=1)).max())
