"""Independent radii: sequential quadratic programming from many directed starts, in low dimension.

Undirected starts get stuck, so each start moves towards a set of opposite neurons.
"""

from itertools import combinations

import numpy as np
from scipy.optimize import minimize


def separable_brute(own, opp, A_own, A_opp, p):
    """The problem (*) of certify/power.py for one point, by SLSQP."""
    c, K1 = np.concatenate([own, opp]), len(own)
    weight = np.concatenate([A_own, -A_opp])

    def room(u):
        return -(weight * np.maximum(u, 0) ** p).sum()

    def slope(u):
        return -(weight * p * np.maximum(u, 0) ** (p - 1))

    if room(c) >= 0:
        return 0.0
    best = np.linalg.norm(np.maximum(own, 0))
    height = max(np.max(own), 0.1)
    for size in range(1, len(opp) + 1):
        for members in combinations(range(len(opp)), size):
            for part in (0.3, 0.6, 1.0):
                start = c.copy()
                start[:K1] *= 0.5
                start[[K1 + j for j in members]] = part * height
                found = minimize(
                    lambda u: ((u - c) ** 2).sum() / 2,
                    start,
                    jac=lambda u: u - c,
                    constraints=[{"type": "ineq", "fun": room, "jac": slope}],
                    method="SLSQP",
                    options={"ftol": 1e-14, "maxiter": 300},
                )
                if room(found.x) >= -1e-10:
                    best = min(best, np.linalg.norm(found.x - c))
    return best


def grid_radius(classifier, x, y, reach, rays=360, steps=2000):
    """The radius of one point in the plane: the first crossing over a fan of rays."""
    import torch

    angle = torch.linspace(0, 2 * np.pi, rays + 1, dtype=torch.float64)[:-1]
    ray = torch.stack([angle.cos(), angle.sin()], 1)
    t = torch.linspace(0, reach, steps, dtype=torch.float64)
    broken = y * classifier((x + t[:, None, None] * ray).reshape(-1, 2)) <= 0
    first = broken.reshape(steps, rays).any(1).double().argmax()
    return float(t[first]) if broken.any() else np.inf
