r"""What `descend` can train, each with its gradient: two-layer nets, multi-class nets, any net, torch modules.

A two-layer net is differentiated in closed form. With u = w/||w|| and r_ij = relu(<w_j, x_i> + b_j) / ||w_j||,
so that f = sum_j v_j ||w_j|| r_j^p, and c_i = dL/df(x_i),

    dL/dv_j = ||w_j|| q_j,   q_j = sum_i c_i r_ij^p
    dL/dw_j = v_j (p sum_i c_i r_ij^(p-1) x_i - (p-1) q_j u_j)
    dL/db_j = v_j p sum_i c_i r_ij^(p-1)

No power of a small number is taken, so an init of 1e-7 is safe in float32. The multi-class net of li2025
(Section 4.2) has f_j = (1/h) sum_r relu(<w_jr, x>) and the cross-entropy -log softmax(f)_z, so that

    dL/dw_jr = (1/(n h)) sum_i (softmax(f(x_i))_j - 1[z_i = j]) relu'(<w_jr, x_i>) x_i

and with another power p, as above with v = 1/h and c_i = (softmax(f(x_i))_j - 1[z_i = j])/n.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tacit.base.linalg import power
from tacit.base.shapes import Numbers, Outputs, Rows, Sets
from tacit.errors import CallError
from tacit.nets import MultiClassNet, TensorNet, TwoLayerNet
from tacit.train.losses import LossName, loss_at, pull_at

State = dict[str, Tensor]
Seen = tuple[Tensor, Tensor]
"""The loss and the margin of each point, (*e, n) each."""


@dataclass(frozen=True)
class Objective:
    """The mean loss of a batch: which loss, its label smoothing, and relu' at 0 (two-layer nets)."""

    loss: LossName
    smoothing: float
    at_kink: float

    def seen(self, f: Outputs, y: Float[Tensor, "*x n"]) -> Seen:
        """Losses l(y_i f_i) and margins y_i f_i."""
        return loss_at(y * f, self.loss, self.smoothing), y * f

    def mean(self, f: Outputs, y: Float[Tensor, "*x n"]) -> Float[Tensor, "*e"]:
        """(1/n) sum_i l(y_i f_i)."""
        return loss_at(y * f, self.loss, self.smoothing).mean(-1)

    def slopes(self, f: Outputs, y: Float[Tensor, "*x n"]) -> Outputs:
        """Its derivative by each f_i."""
        return pull_at(y * f, self.loss, self.smoothing) * y / -f.shape[-1]


@runtime_checkable
class Trainee(Protocol):
    """Parameters that move in place, their gradients on a batch, and the net they make."""

    state: State

    def gradients(self, x: Tensor, y: Tensor) -> tuple[Tensor, State]:
        """The mean loss of the batch (*e), and its gradient by each parameter."""

    def seen(self, x: Tensor, y: Tensor) -> Seen:
        """Losses and margins of the points."""

    def net(self) -> Any:
        """A copy of the net as it is now."""


class TwoLayerTrainee:
    """The closed form of the module's docstring."""

    def __init__(self, net: TwoLayerNet, objective: Objective) -> None:
        self.start, self.objective = net, objective
        held = {"w": net.w, "v": net.v, "b": net.b}
        self.state = {
            name: tensor.detach().clone(memory_format=torch.contiguous_format)
            for name, tensor in held.items()
            if tensor is not None and not (name == "v" and net.fixed_v)
        }

    def net(self) -> TwoLayerNet:
        """The weights copied, since they move in place."""
        copies: dict[str, Any] = {name: tensor.clone() for name, tensor in self.state.items()}
        return replace(self.start, **copies)

    def seen(self, x: Sets, y: Float[Tensor, "*x n"]) -> Seen:
        """f, from ||w_j|| r_ij^p."""
        size, r, slope = self.scaled(x)
        return self.objective.seen(rows_times(self.v * size, r * slope), y)

    @property
    def v(self) -> Float[Tensor, "*e h"]:
        """The second layer, trained or not."""
        return self.state.get("v", self.start.v)

    def scaled(
        self, x: Sets
    ) -> tuple[Float[Tensor, "*e h"], Float[Tensor, "*e h n"], Float[Tensor, "*e h n"]]:
        """||w_j||, r_ij and r_ij^(p-1); for p = 1, where the norm drops out, 1, relu(z_ij) and relu'(z_ij).

        Neurons are rows, as in w: the product with x that follows is then one of contiguous rows.
        """
        w, p = self.state["w"], self.start.p
        z = w @ x.mT
        if "b" in self.state:
            z += self.state["b"].unsqueeze(-1)
        if p == 1:
            slope = relu_slope(z, self.objective.at_kink)
            return torch.ones_like(self.start.v), z.clamp_min_(0), slope
        size = w.norm(dim=-1)
        r = z.clamp_min_(0).mul_(inverse(size).unsqueeze(-1))
        return size, r, r ** (p - 1)

    def gradients(self, x: Sets, y: Float[Tensor, "*x n"]) -> tuple[Float[Tensor, "*e"], State]:
        """Two products of the size of w, and no graph."""
        p, v = self.start.p, self.v
        size, r, slope = self.scaled(x)
        powered = r * slope
        f = rows_times(v * size, powered)
        c = self.objective.slopes(f, y)
        q = (powered @ c.unsqueeze(-1)).squeeze(-1)
        pulls = slope.mul_(c.unsqueeze(-2)).mul_((p * v).unsqueeze(-1))
        by_w = pulls @ x
        if p > 1:
            along = (p - 1) * v * q * inverse(size)
            by_w.addcmul_(along.unsqueeze(-1), self.state["w"], value=-1)
        found = {"w": by_w, "v": size * q, "b": pulls.sum(-1)}
        return self.objective.mean(f, y), {name: found[name] for name in self.state}


class MultiClassTrainee:
    """Cross-entropy of the subclasses z; the margin of a point is f_z less the largest other logit."""

    def __init__(self, net: MultiClassNet, objective: Objective) -> None:
        self.start, self.objective = net, objective
        self.state: State = {"w": net.w.detach().clone(memory_format=torch.contiguous_format)}

    def net(self) -> MultiClassNet:
        """The weights copied, since they move in place."""
        return replace(self.start, w=self.state["w"].clone())

    def seen(self, x: Sets, y: Int[Tensor, "*x n"]) -> Seen:
        """-log softmax(f)_z, and f_z less the largest other."""
        return of_classes(self.net().logits(x), y)

    def gradients(self, x: Sets, y: Int[Tensor, "*x n"]) -> tuple[Float[Tensor, "*e"], State]:
        """Neurons as rows, as in w."""
        w, p = self.state["w"], self.start.p
        k, h = w.shape[-3:-1]
        a = w.flatten(-3, -2) @ x.mT
        if p == 1:
            slope = relu_slope(a, self.objective.at_kink).unflatten(-2, (k, h))
            passed = a.clamp_min_(0).unflatten(-2, (k, h))
        else:
            size = w.norm(dim=-1)
            r = a.clamp_min_(0).unflatten(-2, (k, h)).mul_(inverse(size).unsqueeze(-1))
            slope = power(r, p - 1)
            passed = r * slope * size.unsqueeze(-1)
        f = passed.mean(-2)
        chance = torch.log_softmax(f, -2)
        z = y.expand(*f.shape[:-2], -1).unsqueeze(-2)
        loss = -chance.gather(-2, z).squeeze(-2).mean(-1)
        c = chance.exp_().scatter_(-2, z, 0.0)
        c.scatter_(-2, z, -c.sum(-2, keepdim=True))  # p_z - 1 would lose the digits of a small loss
        pulls = slope.mul_(c.unsqueeze(-2)).mul_(p / (h * x.shape[-2]))
        by_w = (pulls.flatten(-3, -2) @ x).unflatten(-2, (k, h))
        if p > 1:
            q = (passed @ c.unsqueeze(-1)).squeeze(-1).mul_((p - 1) / (h * x.shape[-2]))
            by_w.addcmul_((q * inverse(size).square()).unsqueeze(-1), w, value=-1)
        return loss, {"w": by_w}


def rows_times(weights: Float[Tensor, "*e h"], rows: Float[Tensor, "*e h n"]) -> Outputs:
    """sum_j weights_j rows_j."""
    return (weights.unsqueeze(-2) @ rows).squeeze(-2)


def inverse(size: Float[Tensor, "*e h"]) -> Float[Tensor, "*e h"]:
    """1/||w_j||; 0 where w_j = 0, which contributes nothing."""
    return torch.where(size > 0, 1 / size, 0.0)


def relu_slope(z: Outputs, at_kink: float) -> Outputs:
    """relu'(z), with a choice at z = 0."""
    slope = (z > 0).to(z.dtype)
    if at_kink:
        slope += at_kink * (z == 0)
    return slope


def of_classes(f: Float[Tensor, "*e n k"], y: Int[Tensor, "*x n"]) -> Seen:
    """-log softmax(f)_y, and f_y less the largest other."""
    z = y.expand(f.shape[:-1]).unsqueeze(-1)
    own = f.gather(-1, z)
    others = f.scatter(-1, z, -torch.inf).amax(-1)
    loss = torch.logsumexp(f, -1) - own.squeeze(-1)
    return loss, own.squeeze(-1) - others


class TensorTrainee:
    """Some tensors of any net, by autograd: the loss of the margin of one output, the cross-entropy of logits."""

    def __init__(self, net: TensorNet, objective: Objective, names: tuple[str, ...]) -> None:
        self.start, self.objective = net, objective
        held = net.tensors()
        self.state: State = {name: held[name].detach().clone() for name in names if name in held}

    def net(self) -> Any:
        """The weights copied, since they move in place."""
        return self.start.with_tensors({name: t.clone() for name, t in self.state.items()})

    def logits(self, f: Float[Tensor, "..."]) -> bool:
        """Whether these outputs have a dimension of classes."""
        return f.dim() > len(self.start.ensemble) + 1

    def seen(self, x: Sets, y: Tensor) -> Seen:
        """From one forward pass."""
        return self._seen(self.state, x, y)

    def _seen(self, state: State, x: Tensor, y: Tensor) -> Seen:
        f = self.start.with_tensors(state)(x)
        return of_classes(f, y) if self.logits(f) else self.objective.seen(f, y)

    def gradients(self, x: Sets, y: Tensor) -> tuple[Float[Tensor, "*e"], State]:
        """Members do not see each other, so the gradient of the sum is that of each."""
        with torch.enable_grad():
            leaves = {name: t.detach().requires_grad_(True) for name, t in self.state.items()}
            value = self._seen(leaves, x, y)[0].mean(-1)
            found = torch.autograd.grad(
                value.sum(), list(leaves.values()), allow_unused=True, materialize_grads=True
            )
        return value.detach(), dict(zip(self.state, found, strict=True))


class ModuleTrainee:
    """Any torch module with one output a point, by autograd."""

    def __init__(self, module: nn.Module, objective: Objective) -> None:
        self.module, self.objective = deepcopy(module), objective
        named = self.module.named_parameters()
        self.state: State = {
            name: parameter for name, parameter in named if parameter.requires_grad
        }

    def net(self) -> nn.Module:
        """The module copied, since it moves in place."""
        return deepcopy(self.module)

    def seen(self, x: Rows, y: Numbers) -> Seen:
        """From one forward pass."""
        return self.objective.seen(self.output(x), y)

    def output(self, x: Rows) -> Numbers:
        """f, whether the module gives (n,) or (n, 1)."""
        f = self.module(x)
        if f.shape not in ((len(x),), (len(x), 1)):
            raise CallError(
                f"the module's output has shape {tuple(f.shape)} for {len(x)} points: it must be one number each"
            )
        return f.reshape(len(x))

    def gradients(self, x: Rows, y: Numbers) -> tuple[Float[Tensor, ""], State]:
        """A parameter that the output does not depend on has gradient 0."""
        with torch.enable_grad():
            value = self.objective.mean(self.output(x), y)
            found = torch.autograd.grad(
                value, list(self.state.values()), allow_unused=True, materialize_grads=True
            )
        return value.detach(), dict(zip(self.state, found, strict=True))
