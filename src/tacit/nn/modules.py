"""Torch modules as a kind of net: attacked and trained by autograd; a Sequential of plain layers as a file.

The file has the state dict, and in its metadata `layers`: [class, arguments] of each layer, nested for a
Sequential in a Sequential. No code is stored and none is run: a class that is not among LAYERS is refused.
"""

import inspect
import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tacit.errors import CallError, RunError
from tacit.nets.kinds import register
from tacit.nn.poly_relu import PolyReLU

LAYERS = {
    layer.__name__: layer
    for layer in (
        *(nn.Linear, PolyReLU, nn.Conv1d, nn.Conv2d, nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm),
        *(nn.ReLU, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Softplus, nn.ELU),
        *(nn.Flatten, nn.Unflatten, nn.Identity, nn.Dropout, nn.Dropout2d, nn.ZeroPad2d),
        *(nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.MaxPool2d),
    )
}


def check_in_use(model: Any) -> None:
    """A call error for a module in train mode."""
    if any(part.training for part in model.modules()):
        raise CallError(
            "the model is in train mode, where dropout and batch statistics change its output: "
            "call model.eval() first"
        )


def tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters, then buffers."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def state(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata, as a .safetensors file holds them."""
    return model.state_dict(), {"kind": MODULE.name, "layers": json.dumps(described(model))}


def described(model: nn.Module) -> list[Any]:
    """The class and its arguments; of a Sequential its layers."""
    cls = type(model)
    if cls is nn.Sequential:
        # by name, for a layer may have one, or stand twice
        return [
            "Sequential",
            [
                [name, described(layer)]
                for name, layer in model._modules.items()
                if layer is not None
            ],
        ]
    if LAYERS.get(cls.__name__) is not cls:
        raise CallError(
            f"save_net: a {cls.__name__} is no Sequential of plain layers, so a file cannot say how to build it; "
            "save its state_dict() with safetensors and load it where the class is, or register the class with "
            "state=... and load=... (tacit.nets.register)"
        )
    names = [name for name in inspect.signature(cls).parameters if name not in ("device", "dtype")]
    held = {name: getattr(model, name) for name in names}
    if "bias" in held:
        held["bias"] = held["bias"] is not None
    return [cls.__name__, held]


def load(cls: type, tensors: dict[str, Tensor], meta: dict[str, str]) -> nn.Module:  # noqa: ARG001
    """The module in eval mode, with the tensors as they are stored."""
    return filled(lambda: built(json.loads(meta["layers"])), tensors)


def filled(build: Callable[[], nn.Module], tensors: dict[str, Tensor]) -> nn.Module:
    """What `build` builds, with these tensors for its own, in eval mode."""
    try:
        with torch.device("meta"):  # nothing is drawn
            model = build()
        model.load_state_dict(tensors, assign=True)
    except (KeyError, TypeError, ValueError, RuntimeError, RecursionError) as error:
        told = " ".join(str(error).split())
        raise RunError(f"its layers cannot be built: {type(error).__name__}: {told}") from error
    return model.eval()


def built(layer: Any) -> nn.Module:
    """A module as `described`."""
    name, held = layer
    if name == "Sequential":
        return nn.Sequential(OrderedDict((str(part), built(inner)) for part, inner in held))
    if {"device", "dtype"} & set(held):  # it would be filled there, at whatever size the file says
        raise ValueError(f"a {name} with a device or a type of its own")
    return LAYERS[name](**held)


MODULE = register(
    nn.Module,
    name="sequential",
    tensors=tensors,
    state=state,
    load=load,
    target="tacit.attack.target:module_target",
    certificate="tacit.certify.choice:module_radius",
    structure="tacit.certify.choice:simpler_net",
    relaxed="tacit.certify.crown.chain:itself",
    trainee="tacit.train.descent.checks:module_trainee",
    hidden_weights="tacit.auditing.averaging:module_neurons",
)
