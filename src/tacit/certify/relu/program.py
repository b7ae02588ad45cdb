r"""The distance to a node's convex set in l1 or linf: a linear program, node by node.

With s >= relu(z + <w, delta>) and a penalty on the slack of the last inequality, which keeps every program
feasible,

    min ||delta|| + M sigma   s.t.   s >= 0,  s_i >= z_i + <w_i, delta>,
                                     base + sum s <= sum_opp slope <w, delta> + sigma,

with delta = p - n in its two parts and ||delta|| a t >= p_i + n_i (linf) or t >= sum p + n (l1). The
multipliers mu_i of the own rows and lam of the last give theta = mu / lam. What is certified is theta's
half-space (`relu_node.py`), not the solver's word; if the set is empty, or too far for M, so is the half-space.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float
from scipy.optimize import linprog
from torch import Tensor

from tacit.certify.relu.node import DUAL, Nodes, Sides, Solved, halfspace
from tacit.certify.relu.shapes import PerNode, Shares

PENALTY = 1e5  # M, where the longest neuron and the largest value are scaled to 1
OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class Program:
    """Solves nodes in l1 or linf."""

    sides: Sides
    norm: float

    def __call__(self, nodes: Nodes, theta: Shares, reach: PerNode) -> Solved:
        """Bounds and nearest points; a node whose start theta already shows it beyond `reach` is left."""
        theta = theta.clone()
        delta = theta.new_zeros(len(theta), self.sides.own.shape[1])
        known = halfspace(self.sides, nodes, theta, self.norm)[0]
        outside = nodes.base + nodes.own.clamp_min(0).sum(1) > 0
        for i in ((known < reach) & outside).nonzero().squeeze(1).tolist():
            theta[i], delta[i] = self.solve(nodes.at(torch.tensor([i])), theta[i])
        bound = halfspace(self.sides, nodes, theta, self.norm)[0]
        return Solved(torch.maximum(bound, known), theta, delta)

    def solve(
        self, node: Nodes, theta: Float[Tensor, " m"]
    ) -> tuple[Float[Tensor, " m"], Float[Tensor, " D"]]:
        """theta and the nearest point of one node; as they were where the solver gives up."""
        m, D = self.sides.own.shape
        height = float(torch.cat([node.base, node.own[0]]).abs().amax())
        line = -(node.slope @ self.sides.opp)[0].numpy() / self.unit
        rows = self.rows.copy()
        balance = slice(rows.indptr[m], rows.indptr[m + 1])
        rows.data[balance] = np.concatenate([line, -line, np.ones(m), [-1.0]])
        right = np.zeros(rows.shape[0])
        right[: m + 1] = -torch.cat([node.own[0], node.base]).numpy() / height
        cost = np.zeros(rows.shape[1])
        cost[2 * D + m :] = PENALTY, 1.0
        answer = linprog(cost, rows, right, method="highs", options=OPTIONS)
        if answer.x is None or not answer.ineqlin.marginals[m] < 0:
            return theta, theta.new_zeros(D)
        mu, lam = answer.ineqlin.marginals[:m], answer.ineqlin.marginals[m]
        delta = (answer.x[:D] - answer.x[D : 2 * D]) * height / self.unit
        return torch.from_numpy(mu / lam).clamp(0, 1), torch.from_numpy(delta)

    @cached_property
    def unit(self) -> float:
        """The dual norm of the longest neuron."""
        rows = torch.cat([self.sides.own, self.sides.opp])
        return float(torch.linalg.vector_norm(rows, ord=DUAL[self.norm], dim=1).amax())

    @cached_property
    def rows(self) -> sp.csr_array:
        """The left-hand sides in the variables (p, n, s, sigma, t), the balance still to be filled in."""
        own = self.sides.own.numpy() / self.unit
        m, D = own.shape
        parts = np.eye(D) if math.isinf(self.norm) else np.ones((1, D))
        still = np.zeros((m, 1))
        values = np.hstack([own, -own, -np.eye(m), still, still])
        balance = np.ones((1, 2 * D + m + 1))
        none = np.zeros((len(parts), m + 1))
        length = np.hstack([parts, parts, none, -np.ones((len(parts), 1))])
        return sp.csr_array(np.vstack([values, np.pad(balance, ((0, 0), (0, 1))), length]))
