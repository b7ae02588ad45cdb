"""Nets as files. A pickle is refused unread: unpickling can run any code."""

import math
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from tacit.base.files import read_tensors, write_tensors
from tacit.errors import CallError, RunError
from tacit.nets.kinds import KINDS, asked_of, kind_named, register
from tacit.nets.tensors import ENSEMBLE, TensorNet, axes_of, hints_of

PICKLE_SUFFIXES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin", ".joblib")


def save_net(path: str | Path, net: Any) -> None:
    """Write a net of any registered kind, so that `load_net` gives it back."""
    tensors, meta = asked_of(net, "save_net").state(net)
    write_tensors(Path(path), tensors, meta, "choose another path")


def load_net(path: str | Path) -> Any:
    """The net that a .safetensors file holds, rebuilt from its tensors and metadata, on the host."""
    path = Path(path)
    refuse_pickle(path)
    return rebuilt(path, *read_tensors(path))


def rebuilt(path: Path, tensors: dict[str, Tensor], meta: dict[str, str]) -> Any:
    """The net of that kind, with its tensors."""
    name = meta.get("kind") or None
    if name is None:
        raise RunError(
            f"{path} holds weights without a net (its metadata has kind None): give module:callable, for "
            "instance def make(): net = ...; net.load_state_dict(safetensors.torch.load_file(...)); "
            "return net.eval()"
        )
    kind = kind_named(name)
    if kind is None or kind.load is None:
        loaded = (repr(known.name) for known in KINDS.values() if known.name)
        raise RunError(
            f"{path} holds a net of kind {name!r}; tacit knows {', '.join(loaded)} (metadata `kind` of the "
            "file): import the package that registers it first"
        )
    try:
        return kind.load(kind.cls, tensors, meta)
    except (CallError, RunError) as error:
        raise RunError(f"{path}: {error}") from error


def from_fields(cls: type, tensors: dict[str, Tensor], meta: dict[str, str]) -> Any:
    """The net whose fields are these tensors, and numbers and texts of the metadata (`TensorNet.state`)."""
    return made(cls, tensors, meta, "")


def made(cls: type, tensors: dict[str, Tensor], meta: dict[str, str], prefix: str) -> Any:
    """A dataclass from what is stored under the names of its fields."""
    own = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    check_shapes(cls, own)
    given: dict[str, Any] = {}
    for field in fields(cls):
        name, hint = prefix + field.name, hints_of(cls)[field.name]
        if is_dataclass(hint) and isinstance(hint, type):
            given[field.name] = made(hint, tensors, meta, f"{name}.")
        elif field.name in axes_of(cls):
            if name in tensors:
                given[field.name] = tensors[name]
            elif field.default is MISSING:
                raise RunError(f"a {cls.__name__} without its tensor {name!r}")
        elif name in meta:
            given[field.name] = parsed(hint, name, meta[name])
        elif field.default is MISSING:
            raise RunError(f"a {cls.__name__} without {name!r} in its metadata")
    return cls(**given)


def parsed(hint: Any, name: str, text: str) -> Any:
    """A number, a truth value or a text of the metadata."""
    if hint is bool:
        return text == "true"
    if hint not in (int, float):
        return text
    try:
        value = hint(text)
    except ValueError:
        raise RunError(f"metadata {name}={text!r} is not a number") from None
    if not math.isfinite(value):
        raise RunError(f"metadata {name}={text!r} is not a finite number")
    return value


def check_shapes(cls: type, tensors: dict[str, Tensor]) -> None:
    """Shapes as annotated, all floating-point tensors of one type; the message names the tensor."""
    sizes: dict[str, tuple[int, ...]] = {}
    first: tuple[str, Tensor] | None = None
    for name, axes in axes_of(cls).items():
        tensor = tensors.get(name)
        if tensor is None or not axes:
            continue
        floating = "float32" in hints_of(cls)[name].dtypes
        single = [axis for axis in axes if axis != ENSEMBLE]
        lead = tensor.dim() - len(single)
        fits = lead >= 0 if ENSEMBLE in axes else lead == 0
        if fits:
            own = {ENSEMBLE: tuple(tensor.shape[:lead])} if ENSEMBLE in axes else {}
            own |= {axis: (tensor.shape[lead + k],) for k, axis in enumerate(single)}
            fits = all(sizes.setdefault(axis, size) == size for axis, size in own.items())
        if floating:
            alike = tensor.is_floating_point() if first is None else tensor.dtype == first[1].dtype
            fits = fits and alike
        if not fits or tensor.numel() == 0:
            beside = f" beside {first[0]} {first[1].dtype} {tuple(first[1].shape)}" if first else ""
            raise RunError(
                f"tensor {name!r} is {tensor.dtype} of shape {tuple(tensor.shape)}; a {cls.__name__} needs "
                f"{'floating-point ' if floating else ''}numbers of shape ({', '.join(single)}){beside}, none of "
                "them 0"
            )
        first = first or (name, tensor)


def refuse_pickle(path: Path) -> None:
    """A call error for a file that is a pickle by its first bytes, or by its name if they tell nothing.

    A zip (torch.save) begins with PK, a pickle of protocol 2 or later with 0x80. The first eight bytes of a
    safetensors file are a length and may be anything; its ninth is the brace of its header.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(9)
    except OSError:
        return  # told by whoever reads it
    if not head:
        raise CallError(f"{path} is empty: nothing was saved there")
    if head[8:] == b"{":
        return
    if head.startswith((b"PK", b"\x80")) or path.suffix.lower() in PICKLE_SUFFIXES:
        raise CallError(
            f"{path} is a pickle, and is not opened: unpickling can run any code. Either convert it where you "
            "trust it, with safetensors.torch.save_file({'w': w, 'v': v}, 'net.safetensors', "
            "metadata={'kind': 'two_layer', 'p': '1'}), or give module:callable, a function that builds the model"
        )


register(
    TensorNet,
    name="",
    tensors=TensorNet.tensors,
    state=lambda net: net.state(),
    load=from_fields,
)
