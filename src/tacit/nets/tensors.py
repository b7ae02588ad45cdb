"""What every net can do: move, change its type, give its members and its state, be checked for NaN.

A net is a frozen dataclass of tensors, and its annotations say what the dimensions are: in `w: Float[Tensor,
"*e h D"]` those before h and D are members of an ensemble, and D is the dimension of the points. A field may
itself be a dataclass of tensors.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from tacit.base.checks import check_finite
from tacit.errors import CallError
from tacit.nets.kinds import kind_of

ENSEMBLE = "*e"
N = TypeVar("N", bound="TensorNet")


class TensorNet:
    """The base of a net; the net itself is a frozen dataclass."""

    def __call__(self, x: Any) -> Any:
        """The scores of points (n, D): (n,), or (n, C) logits."""
        raise NotImplementedError

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by its name; those of a part are `part.name`."""
        return dict(_walk(self, ""))

    def to(self: N, *where: str | torch.device | torch.dtype) -> N:
        """A copy on that device, of that type; whole numbers keep their type."""
        places = [each for each in where if not isinstance(each, torch.dtype)]

        def moved(_name: str, tensor: Tensor) -> Tensor:
            for each in where if tensor.is_floating_point() else places:
                tensor = tensor.to(each)
            return tensor

        return _changed(self, "", moved)

    def with_tensors(self: N, tensors: dict[str, Tensor]) -> N:
        """A copy with other tensors under these names."""
        return _changed(self, "", lambda name, held: tensors.get(name, held))

    def double(self: N) -> N:
        """A copy in float64."""
        return self.to(torch.float64)

    @property
    def ensemble(self) -> tuple[int, ...]:
        """The leading dimensions; () of a single net."""
        for name, axes in axes_of(type(self)).items():
            held = getattr(self, name)
            if axes[:1] == (ENSEMBLE,) and held is not None:
                return tuple(held.shape[: held.dim() - len(axes) + 1])
        return ()

    @property
    def inputs(self) -> int | None:
        """The dimension D of the points; None where no tensor tells."""
        for name, axes in axes_of(type(self)).items():
            held = getattr(self, name)
            if axes[-1:] == ("D",) and held is not None:
                return int(held.shape[-1])
        return None

    def members(self: N) -> list[N]:
        """The nets along the first ensemble dimension; a single net has itself as its only member."""
        if not self.ensemble:
            return [self]
        held, axes = self.tensors(), axes_of(type(self))
        held = {name: t for name, t in held.items() if axes.get(name, ())[:1] == (ENSEMBLE,)}
        return [
            self.with_tensors({name: tensor[k] for name, tensor in held.items()})
            for k in range(self.ensemble[0])
        ]

    def check_finite(self, otherwise: str) -> None:
        """A call error that names the tensor which holds NaN or inf; `otherwise` says what is lost."""
        for name, tensor in self.tensors().items():
            check_finite(f"{type(self).__name__}.{name}", tensor, remedy=otherwise)

    def state(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """Tensors and metadata, as a .safetensors file holds them."""
        kind = kind_of(self)
        if kind is None or not kind.name:
            cls = type(self).__name__
            raise CallError(
                f"a {cls} has no name for its files: tacit.nets.register({cls}, name=...)"
            )
        tensors = {name: tensor.contiguous() for name, tensor in self.tensors().items()}
        return tensors, {"kind": kind.name, **dict(_told(self, ""))}


def _walk(value: Any, prefix: str) -> list[tuple[str, Tensor]]:
    found = []
    for field in fields(value):
        held = getattr(value, field.name)
        if isinstance(held, Tensor):
            found.append((prefix + field.name, held))
        elif is_dataclass(held):
            found += _walk(held, f"{prefix}{field.name}.")
    return found


def _changed(value: Any, prefix: str, change: Callable[[str, Tensor], Tensor]) -> Any:
    """The dataclass, each of its tensors changed."""
    new = {}
    for field in fields(value):
        held, name = getattr(value, field.name), prefix + field.name
        if isinstance(held, Tensor):
            new[field.name] = change(name, held)
        elif is_dataclass(held):
            new[field.name] = _changed(held, f"{name}.", change)
    return replace(value, **new)


def _told(value: Any, prefix: str) -> list[tuple[str, str]]:
    """The fields that are numbers, truth values or texts, as texts."""
    found = []
    for field in fields(value):
        held, name = getattr(value, field.name), prefix + field.name
        if isinstance(held, bool):
            found.append((name, str(held).lower()))
        elif isinstance(held, int | float):
            number = float(held) if hints_of(type(value))[field.name] is float else held
            found.append((name, repr(number)))
        elif isinstance(held, str):
            found.append((name, held))
        elif is_dataclass(held):
            found += _told(held, f"{name}.")
    return found


def _hints_of(cls: type) -> dict[str, Any]:
    """The type of each field; of `T | None` it is T."""
    hints = get_type_hints(cls)
    found = {}
    for field in fields(cls):
        hint = hints[field.name]
        if get_origin(hint) in (Union, types.UnionType):
            hint = next(part for part in get_args(hint) if part is not type(None))
        found[field.name] = hint
    return found


def _axes_of(cls: type) -> dict[str, tuple[str, ...]]:
    """The names of the dimensions of each tensor, as jaxtyping writes them; () where they are not plain names."""
    found = {}
    for name, hint in hints_of(cls).items():
        text = getattr(hint, "dim_str", None)
        if text is not None or hint is Tensor:
            axes = tuple((text or "").split())
            plain = all(axis.isidentifier() for axis in axes if axis != ENSEMBLE)
            found[name] = axes if plain and ENSEMBLE not in axes[1:] else ()
    return found


hints_of: Callable[[type], dict[str, Any]] = cache(_hints_of)
axes_of: Callable[[type], dict[str, tuple[str, ...]]] = cache(_axes_of)
