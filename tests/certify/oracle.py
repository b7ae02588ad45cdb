"""Independent radii of ReLU nets: a mixed-integer program (SCIP, by pyscipopt), and all subsets.

In the program one binary a neuron switches its ReLU: nothing of `tacit.certify` is used, nor that own
neurons are convex.
"""

import math
from itertools import chain, combinations

import numpy as np
import pyscipopt
from scipy.optimize import nnls


def miqp_radius(w, v, b, x, y, reach, norm=2):
    """min ||delta|| with y f(x + delta) <= 0 over moves of length at most `reach`; inf if there is none."""
    z = w @ x + b
    if norm == 2 and len(w) < w.shape[1]:
        w = np.linalg.qr(w.T)[1].T  # coordinates along an orthonormal basis of the span
    h, D = w.shape
    # tolerances are absolute: lengths in units of the reach, values in units of the largest change
    sway = reach * np.linalg.norm(w, {1: math.inf, 2: 2, math.inf: 1}[norm], axis=1)
    w, z, sway = w * reach / sway.max(), z / sway.max(), sway / sway.max()
    low, high = np.minimum(z - sway, 0), np.maximum(z + sway, 0)
    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("numerics/feastol", 1e-8)
    model.setParam("limits/gap", 1e-7)
    delta = [model.addVar(lb=-1, ub=1) for _ in range(D)]
    length = model.addVar(lb=0, ub=1)
    if norm == 2:
        model.addCons(pyscipopt.quicksum(d * d for d in delta) <= length)
    else:
        size = [model.addVar(lb=0, ub=1) if norm == 1 else length for _ in range(D)]
        for s, d in zip(size, delta, strict=True):
            model.addCons(s >= d)
            model.addCons(s >= -d)
        if norm == 1:
            model.addCons(pyscipopt.quicksum(size) <= length)
    f = 0
    for j in range(h):
        value = float(z[j]) + pyscipopt.quicksum(float(w[j, i]) * delta[i] for i in range(D))
        on = model.addVar(vtype="B")
        passed = model.addVar(lb=0, ub=float(high[j]))
        model.addCons(passed >= value)
        model.addCons(passed <= value - float(low[j]) * (1 - on))
        model.addCons(passed <= float(high[j]) * on)
        f += float(v[j]) * passed
    model.addCons(float(y) * f <= 0)
    model.setObjective(length)
    model.optimize()
    if model.getStatus() == "infeasible":
        return math.inf
    assert model.getStatus() in ("optimal", "gaplimit"), model.getStatus()
    found = model.getObjVal()
    return reach * (math.sqrt(found) if norm == 2 else found)


def enumerated_radius(w, v, b, x, y, *, ties_break=True):
    """The l2 radius by all subsets: the least distance to {sum_S u <= sum_T u for all S} over T, each by
    non-negative least squares (Lawson & Hanson, chapter 23), u = |v| (<w, x> + b)."""
    w, u = abs(v)[:, None] * w, abs(v) * (w @ x + b)
    own, opp = (np.flatnonzero(v * y * s > 0) for s in (1, -1))
    margin = y * (np.sign(v) * np.maximum(u, 0)).sum()
    if margin < 0 or (ties_break and margin == 0):
        return 0.0
    best = math.inf
    for T in subsets(opp):
        if T or ties_break:
            rows = [(list(S), list(T)) for S in subsets(own) if S or T]
            G = np.array([w[S].sum(0) - w[T].sum(0) for S, T in rows])
            h = -np.array([u[S].sum() - u[T].sum() for S, T in rows])
            E, f = np.vstack([-G.T, -h[None]]), np.zeros(w.shape[1] + 1)
            f[-1] = 1
            residual = E @ nnls(E, f)[0] - f
            if abs(residual[-1]) > 1e-9:  # otherwise the set is empty
                best = min(best, float(np.linalg.norm(residual[:-1] / residual[-1])))
    return best


def subsets(items):
    """All subsets, the empty one first."""
    sizes = range(len(items) + 1)
    return list(chain.from_iterable(combinations(items.tolist(), size) for size in sizes))
