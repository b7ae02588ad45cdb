"""Exact radii of F^(p): 20,000 points of D = 1000, K = 10, against SLSQP with directed starts.

The reference solves the same K-dimensional problem point by point from one start towards each opposite
centre, on 20 points, and is extrapolated. The bar of the project: under 2 s for p = 2, 3 and 4.
"""

import resource
import time

import numpy as np
import torch
from scipy.optimize import minimize

from tacit.certify import radius
from tacit.data import Samples, min2024_mixture
from tacit.nets import centre_net

POINTS, REFERENCE_POINTS, D, K, K1, ALPHA = 20_000, 20, 1000, 10, 6, 0.1


def main() -> None:
    mixture = min2024_mixture(D, K, K1, ALPHA, torch.Generator().manual_seed(0))
    points = mixture.sample(POINTS, torch.Generator().manual_seed(1))
    for p in (2.0, 3.0, 4.0):
        net = centre_net(mixture, p)
        radius(net, points.x[:100], points.y[:100])  # warm up
        start = time.perf_counter()
        ours = radius(net, points.x, points.y).upper
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        theirs = reference(mixture.centres, mixture.labels, points, p)
        each = (time.perf_counter() - start) / REFERENCE_POINTS
        gap = np.abs(ours[:REFERENCE_POINTS].numpy() - theirs).max()
        print(
            f"radius of F^({p:g}), {POINTS} points: {seconds:.2f} s, "
            f"{each * POINTS / seconds:.0f}x SLSQP (largest gap {gap:.1e})"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB, {points.x.nbytes / 2**30:.2f} GiB of it the points")


def reference(centres: torch.Tensor, labels: torch.Tensor, points: Samples, p: float) -> np.ndarray:
    """The least of SLSQP's answers over starts half way towards each opposite centre."""
    mu, sign = centres.numpy(), labels.numpy()
    found = np.full(REFERENCE_POINTS, np.inf)
    for i in range(REFERENCE_POINTS):
        c = mu @ points.x[i].numpy()
        weight = sign * float(points.y[i])
        for j in np.flatnonzero(weight < 0):
            start = c / 2
            start[j] = c.max() / 2
            answer = minimize(
                lambda u, c=c: ((u - c) ** 2).sum() / 2,
                start,
                jac=lambda u, c=c: u - c,
                constraints=[
                    {
                        "type": "ineq",
                        "fun": lambda u, w=weight: -(w * np.maximum(u, 0) ** p).sum(),
                        "jac": lambda u, w=weight: -(w * p * np.maximum(u, 0) ** (p - 1)),
                    }
                ],
                method="SLSQP",
                options={"ftol": 1e-12},
            )
            found[i] = min(found[i], np.linalg.norm(answer.x - c))
    return found


if __name__ == "__main__":
    main()
