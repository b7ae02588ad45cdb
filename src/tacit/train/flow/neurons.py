"""Neurons in the coordinates of the flow: a direction on the sphere and one number for the mass.

A neuron v relu(<w, x>)^p / ||w||^(p-1) is A relu(<u, x>)^p with u = w / ||w|| and A = v ||w||. Let
G(u) = sum_i g_i y_i relu(<x_i, u>)^p, g_i = -l'(margin_i), and T = v / ||w||. Gradient flow of the loss is

    u' = T P_u grad G(u)        P_u = I - u u^T
    q' = G(u) times a factor    q the mass coordinate, one of four kinds

| kind     | when                | conserved             | q                    | T            | q'        |
| -------- | ------------------- | --------------------- | -------------------- | ------------ | --------- |
| BALANCED | |v| = ||w||         | the balance           | log ||w||            | s = sign(v)  | s G       |
| WIDE     | |v| < ||w||         | k^2 = ||w||^2 - v^2   | e: ||w|| = k cosh e, | tanh e       | G         |
|          |                     |                       | v = k sinh e         |              |           |
| TALL     | |v| > ||w||         | k^2 = v^2 - ||w||^2   | e: ||w|| = k sinh e, | s coth e     | s G       |
|          |                     |                       | v = s k cosh e       |              |           |
| FIXED    | v = a is not trained| v                     | log ||w||            | a / ||w||    | T G       |

(min2024, Section 2; the balance: Du, Hu & Lee 2018.) What is conserved is conserved exactly here, whatever the
step, and masses of 1e-140 (weights of 1e-70) lose no digit. The v of a WIDE neuron may change sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.base.checks import check_finite
from tacit.errors import CallError
from tacit.nets.two_layer import TwoLayerNet
from tacit.train.flow.ensemble import Ensemble, Members

BALANCED: Final = 0
WIDE: Final = 1
TALL: Final = 2
FIXED: Final = 3

# |v| and ||w|| that agree to this part are balanced: float32 weights cannot say more
BALANCE = 1e-6


@dataclass(frozen=True)
class Neurons(Ensemble):
    """E members of k neurons each. A neuron with sign 0 is padding: no mass, no motion."""

    u: Float[Tensor, "E k D"]
    q: Float[Tensor, "E k"]
    log_k: Float[Tensor, "E k"]
    sign: Float[Tensor, "E k"]
    kind: Int[Tensor, "E k"]

    @cached_property
    def tilt(self) -> Float[Tensor, "E k"]:
        """T = v / ||w||: how fast the direction turns."""
        rate = torch.where(self.kind == WIDE, self.q.tanh(), self.sign)
        rate = torch.where(self.kind == TALL, self.sign / self.q.clamp_min(TINY).tanh(), rate)
        return torch.where(self.kind == FIXED, self.sign * (self.log_k - self.q).exp(), rate)

    @cached_property
    def climb(self) -> Float[Tensor, "E k"]:
        """q' / G."""
        rate = torch.where(self.kind == WIDE, torch.ones_like(self.q), self.sign)
        return torch.where(self.kind == FIXED, self.tilt, rate)

    @cached_property
    def log_mass(self) -> Float[Tensor, "E k"]:
        """log |A| = log |v| ||w||; -inf for padding and where v = 0."""
        e = self.q.abs()
        # log(k^2 sinh(e) cosh(e)), without overflow
        hyperbolic = 2 * self.log_k + 2 * e + torch.log(-torch.expm1(-4 * e)) - math.log(4)
        mass = torch.where((self.kind == WIDE) | (self.kind == TALL), hyperbolic, 2 * self.q)
        mass = torch.where(self.kind == FIXED, self.log_k + self.q, mass)
        return torch.where(self.sign == 0, -math.inf, mass)

    @cached_property
    def log_norm(self) -> Float[Tensor, "E k"]:
        """log ||w||; -inf for padding."""
        e = self.q.abs()
        cosh = self.log_k + e + torch.log1p(torch.exp(-2 * e)) - math.log(2)
        sinh = self.log_k + e + torch.log(-torch.expm1(-2 * e)) - math.log(2)
        norm = torch.where(self.kind == WIDE, cosh, self.q)
        norm = torch.where(self.kind == TALL, sinh, norm)
        return torch.where(self.sign == 0, -math.inf, norm)

    @property
    def balance(self) -> Members:
        """sum_j ||w_j||^2 - v_j^2, which the flow conserves (0 where v is fixed), in float64."""
        sign = (self.kind == WIDE).double() - (self.kind == TALL).double()
        return (sign * (2 * self.log_k.double()).exp()).sum(-1)

    @cached_property
    def side(self) -> Float[Tensor, "E k"]:
        """sign(v), as it is now."""
        return torch.where(self.kind == WIDE, self.q.sign(), self.sign)

    @cached_property
    def A(self) -> Float[Tensor, "E k"]:
        """v ||w||, signed."""
        return self.side * self.log_mass.exp()

    def moved(self, du: Float[Tensor, "E k D"], dq: Float[Tensor, "E k"]) -> Neurons:
        """The neurons after a step: directions back on the sphere; a TALL neuron's e stays positive."""
        u = self.u + du
        u = u / u.norm(dim=-1, keepdim=True)
        q = self.q + dq
        # ||w|| = k sinh e with e < 0: w has passed through 0, to the other side
        past = (self.kind == TALL) & (q < 0)
        u = torch.where(past.unsqueeze(-1), -u, u)
        return replace(self, u=u, q=torch.where(self.kind == TALL, q.abs().clamp_min(TINY), q))

    def net(self, member: int, p: float, biased: bool = False) -> TwoLayerNet:
        """One member as a net, in float64, without its padding. Weights below 1e-300 become 0."""
        here = self.members(torch.tensor([member]))
        real = here.sign[0] != 0
        u, norm = here.u[0, real].double(), here.log_norm[0, real].double()
        size = norm.exp()
        log_v = torch.where(here.kind[0, real] == FIXED, here.log_k[0, real], -math.inf).double()
        v = here.side[0, real] * torch.maximum(log_v, here.log_mass[0, real].double() - norm).exp()
        w = u * size.unsqueeze(1)
        fixed = bool((here.kind[0, real] == FIXED).any())
        if biased:
            return TwoLayerNet(w[:, :-1].contiguous(), v, w[:, -1].contiguous(), p, fixed)
        return TwoLayerNet(w, v, None, p, fixed)


TINY = 1e-12
WIDER = ", float64 from 2.2e-308 on"


def neurons_of(
    w: Float[Tensor, "E h D"], v: Float[Tensor, "E h"], *, fixed_v: bool = False
) -> Neurons:
    """Weights in the flow's coordinates; numbers of a neuron computed in float64, kept in the dtype of w."""
    check_finite("the start", w, v, remedy="the flow starts from finite weights")
    largest = w.abs().amax(-1).double()
    if (largest == 0).any():
        member, neuron = (largest == 0).nonzero()[0].tolist()
        raise CallError(
            f"neuron {neuron} of member {member} has w = 0 and so no direction: draw small random weights, "
            f"of {torch.finfo(w.dtype).tiny:.2g} or more in {w.dtype}"
        )
    least = torch.finfo(w.dtype).tiny
    coarse = (largest < least) | ((v != 0) & (v.abs() < least))
    if coarse.any():
        member, neuron = coarse.nonzero()[0].tolist()
        size = min(float(largest[member, neuron]), float(v[member, neuron].abs()) or math.inf)
        raise CallError(
            f"neuron {neuron} of member {member} starts at {size:.2g}, where {w.dtype} has lost digits of its "
            f"direction: it keeps all from {least:.2g} on{WIDER if w.dtype != torch.float64 else ''}"
        )
    # divided by the largest entry first: squares of weights of 1e-200 underflow
    scaled = w / largest.unsqueeze(-1).to(w)
    length = scaled.norm(dim=-1)
    log_r, log_v = largest.log() + length.double().log(), v.double().abs().log()
    u = scaled / length.unsqueeze(-1)
    sign = torch.where(v == 0, torch.ones_like(v), v.sign()).to(w.dtype)
    if fixed_v:
        if (v == 0).any():
            raise CallError("a second layer that is fixed at 0 never moves its neuron: drop it")
        kind = torch.full_like(sign, FIXED, dtype=torch.int64)
        return Neurons(u, log_r.to(w.dtype), log_v.to(w.dtype), sign, kind)
    gap = log_v - log_r
    kind = torch.where(gap < 0, WIDE, TALL)
    kind = torch.where(gap.abs() <= BALANCE, BALANCED, kind)
    ratio = torch.exp(-gap.abs()).clamp_max(1 - BALANCE / 2)
    e = torch.atanh(ratio)
    e = torch.where(kind == WIDE, e * v.double().sign(), e)
    log_k = torch.maximum(log_r, log_v) + 0.5 * torch.log1p(-ratio.square())
    balanced = kind == BALANCED
    q = torch.where(balanced, log_r, e)
    log_k = torch.where(balanced, 0.0, log_k)
    return Neurons(u, q.to(w.dtype), log_k.to(w.dtype), sign, kind)
