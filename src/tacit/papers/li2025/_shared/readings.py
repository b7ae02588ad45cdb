"""What Sections 5.1 and 5.2 and Appendices B.1 and C.2 speak of, read off the coefficients of either net."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.papers.li2025._shared.coefficients import ClassSeen, Net, Seen, State


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
        "own_active": float(seen.active[own].double().mean()),
        "other_active": float(seen.active[~own].double().mean()),
    }


def estimated(problem: Net, at: State) -> Float[Tensor, " n"]:
    """q_hat of each point, the mean over its neurons of lambda and sigma (before Lemmas B.7 and C.10)."""
    mine = problem.own.to(at.sigma)
    return ((at.lam @ problem.z.T + at.sigma) * mine).sum(0) / problem.width


def within(problem: Net, values: Float[Tensor, " n"]) -> float:
    """The largest gap between two points of one cluster."""
    rows = torch.where(problem.z.T > 0, values, torch.nan)
    spread = [row[~row.isnan()] for row in rows]
    return max(float(row.max() - row.min()) for row in spread if len(row))
