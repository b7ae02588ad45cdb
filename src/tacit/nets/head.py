r"""What a fitted classifier computes, from the user's X to one score a class.

The net reads X itself, as released or as written (`nets.poly_relu`): it holds the centre.

Where a class has several subclasses its score is log sum exp of their logits: softmax of the scores is then the
sum of the subclasses' probabilities (li2025, Section 4.2).
"""

import json
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tacit.errors import RunError
from tacit.nets.kinds import register
from tacit.nets.multiclass import MultiClassNet
from tacit.nets.poly_relu import PolyReLUNet
from tacit.nets.saved import from_fields
from tacit.nets.tensors import TensorNet


@dataclass(frozen=True)
class Head(TensorNet):
    """A net with K outputs, and the class 0..C-1 of each."""

    net: PolyReLUNet
    owner: Int64[Tensor, " K"]

    @property
    def whole(self) -> bool:
        """Is every class one output?"""
        return len(self.owner) == int(self.owner.max()) + 1

    @property
    def inputs(self) -> int | None:
        """The dimension of the points."""
        return self.net.inputs

    def __call__(self, x: Float[Tensor, "n D"]) -> Float[Tensor, "n C"]:
        """One number a class."""
        return class_scores(self.net(x), self.owner)

    def state(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """The net's, and the class of each output."""
        tensors, meta = self.net.state()
        return tensors, meta | {"kind": KIND.name, "outputs": json.dumps(self.owner.tolist())}


def head_of(net: MultiClassNet) -> Head:
    """The multi-class net of li2025 as a head with the same scores; class 0 is the positive one."""
    k, h, _ = net.w.shape
    v = torch.eye(k, dtype=net.w.dtype, device=net.w.device).repeat_interleave(h, 1) / h
    flat = PolyReLUNet(net.w.flatten(0, 1), v, p=net.p, normalize_input=False)
    return Head(flat, (net.labels < 0).long())


def class_scores(logits: Float[Tensor, "n K"], owner: Int64[Tensor, " K"]) -> Float[Tensor, "n C"]:
    """log sum exp over the outputs of each class."""
    C = int(owner.max()) + 1
    if len(owner) == C:
        return logits
    return torch.stack([logits[:, owner == c].logsumexp(1) for c in range(C)], 1)


def loaded(cls: type, tensors: dict[str, Tensor], meta: dict[str, str]) -> Head | PolyReLUNet:
    """The head of a file; where class k is output k, its net alone."""
    net: PolyReLUNet = from_fields(PolyReLUNet, tensors, meta)
    try:
        owner = [int(c) for c in json.loads(meta["outputs"])]
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise RunError(
            f"the head is damaged: no class of each output can be read ({error})"
        ) from None
    if owner == list(range(net.v.shape[0])):
        return net
    if len(owner) != net.v.shape[0] or sorted(set(owner)) != list(range(len(set(owner)))):
        raise RunError(
            f"the head is damaged: {net.v.shape[0]} outputs belong to classes {owner[:9]}"
        )
    return cls(net, torch.tensor(owner))


KIND = register(
    Head,
    name="poly_relu_classifier",  # PolyReLUClassifier.save writes the same, and more
    load=loaded,
    certificate="tacit.certify.radius:head_radius",
    proved_points="tacit.certify.radius:proved_points",
    trainee="tacit.train.descent.checks:tensor_trainee",
    trained=("net.w", "net.v", "net.b"),
    audited=Head.double,
    hidden_weights="tacit.auditing.averaging:head_neurons",
)
