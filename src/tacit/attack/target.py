"""What an attack sees of a model: scores of rows (n, D), and gradients pulled back to the rows.

Any torch callable becomes a target by autograd, whatever shape its inputs have. A two-layer net has its gradient
in closed form, (v_j p relu(z_j)^(p-1) / ||w_j||^(p-1)) w_j summed over j, at the cost of two matrix products.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack.losses import Loss, Scores
from tacit.attack.norms import positive
from tacit.base.linalg import power
from tacit.base.shapes import Inputs, Labels, Numbers, Rows
from tacit.errors import CallError, TacitError
from tacit.nets import PolyReLUNet, TwoLayerNet
from tacit.nets.kinds import kind_of
from tacit.nets.poly_relu import without_dust
from tacit.nn.modules import check_in_use

BY_QUERIES = "attack it by queries alone (black_box in Python, --black-box in the command)"
# what torch and numpy say of inputs of a wrong shape
OF_SHAPES = re.compile(r"shape|size|dimension|\bmat1\b|channels|features", re.IGNORECASE)

LONGEST = 300  # characters of an error that is passed on


class ModelError(CallError):
    """The model raised an error, or gave NaN or inf, at points that it was shown."""


@runtime_checkable
class Target(Protocol):
    """Scores, and scores with their pullback: cotangents of the scores to gradients of the rows."""

    def scores(self, x: Rows) -> Scores:
        """(n,) or (n, C)."""

    def with_pullback(self, x: Rows) -> tuple[Scores, Callable[[Scores], Rows]]:
        """The scores at x and v -> v' d(scores)/dx."""


@dataclass(frozen=True)
class TorchTarget:
    """Any callable on (n, *shape) that returns (n,), (n, 1) or (n, C)."""

    model: Callable[[Any], Any]
    shape: tuple[int, ...]

    def scores(self, x: Rows) -> Scores:
        """Without a graph."""
        with torch.no_grad():
            # a clone, so that a model that writes into its input does not write into the points
            return self._checked(self._called(x.unflatten(1, self.shape).clone()), x)

    def with_pullback(self, x: Rows) -> tuple[Scores, Callable[[Scores], Rows]]:
        """By autograd; the model's own parameters gather no gradient."""
        with torch.enable_grad():
            leaf = x.detach().requires_grad_(True)
            # the clone is no leaf: a model may write into it
            shown = leaf.unflatten(1, self.shape).clone()
            try:
                scores = self._checked(self._called(shown), x)
            except ModelError as error:
                self.scores(x)  # fails in the same way, unless the gradient is what it fails for
                raise CallError(
                    "the model gives scores, but fails where a gradient is asked for (numpy inside it?): "
                    f"{error}; keep it in torch, or {BY_QUERIES}"
                ) from error
        if not scores.requires_grad:
            raise CallError(
                f"the model's output has no gradient with respect to its input: {BY_QUERIES}"
            )

        def pullback(cotangent: Scores) -> Rows:
            try:
                # a cotangent as an argument would import torch's compiler, for seconds
                with torch.enable_grad():
                    seen = (scores * cotangent).sum()
                (gradient,) = torch.autograd.grad(seen, leaf)
            except RuntimeError as error:
                raise CallError(
                    f"the model gives scores and no gradient: {one_line(error)}; {BY_QUERIES}"
                ) from error
            # a square root or a norm at 0: no way down is known there, and a search jumps
            return gradient.nan_to_num(nan=0.0)

        return scores.detach(), pullback

    def _called(self, x: Inputs) -> Any:
        """What the model returns; whatever it raises becomes one line."""
        try:
            return self.model(x)
        except TacitError:
            raise
        except Exception as error:  # the user's code may raise anything
            raise failure(error, self.shape) from error

    def _checked(self, scores: Any, x: Rows) -> Scores:
        """(n,) or (n, C), finite and of the type of x."""
        n = len(x)
        if not isinstance(scores, Tensor):
            raise CallError(
                f"the model returned {type(scores).__name__}: it must return one tensor of scores"
            )
        if not scores.is_floating_point():
            raise CallError(
                f"the model returned {scores.dtype}: scores are floating-point numbers, whose sign or largest is "
                "the class; return the logits (or add .float() if labels are all it has, and --black-box)"
            )
        if n == 1 and scores.dim() < 2:  # squeeze() in a model drops the batch of one point as well
            scores = scores.reshape(1, -1)
        if scores.dim() == 2 and scores.shape[1] == 1:
            scores = scores.squeeze(1)
        if scores.dim() not in (1, 2) or len(scores) != n or scores.numel() == 0:
            raise CallError(
                f"the model returned shape {tuple(scores.shape)} for {n} points: it must return "
                f"({n},) for one output or ({n}, classes) for logits"
            )
        scores = scores.to(x.dtype)
        if not torch.isfinite(scores).all():
            raise ModelError("the model's output holds NaN or inf: no margin can be read off it")
        return scores


def failure(error: Exception, shape: tuple[int, ...]) -> ModelError:
    """One line on what a model raised at points of that shape."""
    kind = isinstance(error, RuntimeError | ValueError | IndexError | TypeError)
    if kind and OF_SHAPES.search(str(error)):
        return ModelError(f"the model does not take points of shape {shape}: {one_line(error)}")
    return ModelError(f"the model failed: {one_line(error)}")


def one_line(error: BaseException) -> str:
    """The kind of an error and its text, on one line that is not too long."""
    text = " ".join(str(error).split())
    told = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return f"{type(error).__name__}: {told}" if told else type(error).__name__


@dataclass(frozen=True)
class TwoLayerTarget:
    """A two-layer net without ensemble dimensions, its gradient in closed form."""

    net: TwoLayerNet
    shape: tuple[int, ...] = ()

    def scores(self, x: Rows) -> Scores:
        """f."""
        return self.net(x)

    def with_pullback(self, x: Rows) -> tuple[Scores, Callable[[Scores], Rows]]:
        """f, and v -> v_n sum_j weight_j p relu(z_nj)^(p-1) w_j."""
        net = self.net
        norm = net.w.norm(dim=1)
        weight = torch.where(norm > 0, net.v * positive(norm) ** (1 - net.p), 0.0)
        z = (x @ net.w.T if net.b is None else torch.addmm(net.b, x, net.w.T)).clamp_min(0)
        slope = (z > 0).to(z.dtype) if net.p == 1 else z ** (net.p - 1)
        f = (slope * z) @ (weight if net.p > 1 else net.v)

        def pullback(cotangent: Scores) -> Rows:
            return (
                slope * (net.p * weight if net.p > 1 else net.v) * cotangent.unsqueeze(1)
            ) @ net.w

        return f, pullback


@dataclass(frozen=True)
class PolyReLUTarget:
    """A multi-class PolyReLU net without ensemble dimensions.

    With u = c/||c|| and r_j = relu(<w_j, u>)/||w_j||, d hidden_j/dx is p r_j^(p-1) w_j - (p-1) ||w_j|| r_j^p u as
    released, and (I - uu') p r_j^(p-1) w_j / ||c|| as written. Raw it is p r_j^(p-1) w_j with u = c.
    """

    net: PolyReLUNet
    shape: tuple[int, ...] = ()

    @cached_property
    def _unit_w(self) -> Float[Tensor, "h D"]:
        """w_j / ||w_j||, 0 where w_j = 0: what both products use, made once."""
        return without_dust(self.net.w / positive(self.net.w.norm(dim=1, keepdim=True)))

    @cached_property
    def _mass(self) -> Float[Tensor, "C h"]:
        """v_kj ||w_j||."""
        return self.net.v * self.net.w.norm(dim=1)

    def scores(self, x: Rows) -> Scores:
        """The logits."""
        return self.with_pullback(x)[0]

    def with_pullback(self, x: Rows) -> tuple[Scores, Callable[[Scores], Rows]]:
        """The logits, and their gradients summed with weights."""
        net = self.net
        c = x if net.centre is None else x - net.centre
        r = (c @ self._unit_w.T).clamp_min_(0)
        # at p = 1 the lengths cancel, unless points are put on the sphere
        sized = net.unit or (net.normalize_input and net.p > 1)
        size = positive(c.norm(dim=1, keepdim=True)) if sized else None
        if size is not None:
            r.div_(size)
        slope = r.sign() if net.p == 1 else power(r, net.p - 1)
        plain = (r if net.p == 1 else r * slope) @ self._mass.T
        logits = plain if size is None or net.unit else plain * size

        def pullback(cotangent: Scores) -> Rows:
            gradient = (cotangent @ (net.p * self._mass)).mul_(slope) @ self._unit_w
            if size is not None and net.unit:
                u = c / size
                gradient.addcmul_((gradient * u).sum(1, keepdim=True), u, value=-1).div_(size)
            elif size is not None:
                along = (cotangent * plain).sum(1, keepdim=True) / size
                gradient.addcmul_(c, along, value=1 - net.p)
            return gradient

        logits = logits if net.b is None else logits + net.b
        if not bool(logits.isfinite().all()):  # a NaN margin would count as unbroken
            raise ModelError("the net's output holds NaN or inf: no margin can be read off it")
        return logits, pullback


def target_of(model: Any, shape: tuple[int, ...]) -> Target:
    """The target of a net, as its kind is registered, or of any torch callable on inputs of that shape."""
    if getattr(model, "ensemble", ()):
        raise CallError("an ensemble is attacked member by member: pass one net at a time")
    kind = kind_of(model)
    made = None if kind is None else kind.target
    return TorchTarget(model, shape) if made is None else made(model, shape)


def module_target(model: torch.nn.Module, shape: tuple[int, ...]) -> Target:
    """A torch module, by autograd, in eval mode."""
    check_in_use(model)
    return TorchTarget(model, shape)


def loss_and_gradient(
    target: Target, x: Rows, y: Labels, loss: Loss
) -> tuple[Scores, Numbers, Rows]:
    """Scores, the loss of each row and its gradient in the row."""
    scores, pullback = target.with_pullback(x)
    with torch.enable_grad():
        leaf = scores.detach().requires_grad_(True)
        value = loss(leaf, y)
        (slope,) = torch.autograd.grad(value.sum(), leaf)
    return scores, value.detach(), pullback(slope)
