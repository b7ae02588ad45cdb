"""Reading back the nets of a run folder. A pickle is refused unread: unpickling can run any code."""

from __future__ import annotations

import math
from pathlib import Path

from torch import Tensor

from tacit.base.files import read_tensors
from tacit.errors import CallError, RunError
from tacit.nets.multiclass import MultiClassNet
from tacit.nets.poly_relu import PolyReLUNet
from tacit.nets.two_layer import TwoLayerNet

PICKLE_SUFFIXES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin", ".joblib")
NEEDED = {"two_layer": ("w", "v"), "multi_class": ("w", "labels"), "poly_relu": ("w", "v")}
SavedNet = TwoLayerNet | MultiClassNet | PolyReLUNet


def load_net(path: str | Path) -> SavedNet:
    """The net that a `nets/*.safetensors` file holds, rebuilt from its tensors and metadata."""
    path = Path(path)
    refuse_pickle(path)
    return rebuilt(path, *read_tensors(path))


def rebuilt(path: Path, tensors: dict[str, Tensor], meta: dict[str, str]) -> SavedNet:
    """The net of that kind, with its tensors."""
    kind = meta.get("kind")
    if kind is None:
        raise RunError(
            f"{path} holds weights without a net (its metadata has kind None): give module:callable, for "
            "instance def make(): net = ...; net.load_state_dict(safetensors.torch.load_file(...)); "
            "return net.eval()"
        )
    if kind not in NEEDED:
        raise RunError(
            f"{path} holds a net of kind {kind!r}; tacit knows {', '.join(map(repr, NEEDED))} "
            "(metadata `kind` of the file)"
        )
    missing = [name for name in NEEDED[kind] if name not in tensors]
    if missing:
        raise RunError(f"{path} holds a {kind} net without its tensor {missing[0]!r}")
    check_tensors(path, kind, tensors)
    if kind == "multi_class":
        return MultiClassNet(tensors["w"], tensors["labels"])
    try:
        p = float(meta.get("p", "1"))
    except ValueError:
        raise RunError(f"{path}: metadata p={meta['p']!r} is not a number") from None
    if not 1 <= p < math.inf:
        raise RunError(f"{path}: metadata p={meta['p']!r} is not a finite number from 1 on")
    if kind == "poly_relu":
        seen, unit = (meta.get(name) == "true" for name in ("normalize_input", "unit"))
        w, v, b, centre = tensors["w"], tensors["v"], tensors.get("b"), tensors.get("centre")
        return PolyReLUNet(w, v, b, p, centre, normalize_input=seen, unit=unit)
    fixed = meta.get("fixed_v") == "true"
    return TwoLayerNet(tensors["w"], tensors["v"], tensors.get("b"), p, fixed_v=fixed)


def check_tensors(path: Path, kind: str, tensors: dict[str, Tensor]) -> None:
    """Shapes, types and labels; the message names the tensor that does not fit."""
    w = tensors["w"]
    least = 3 if kind == "multi_class" else 2
    if w.dim() < least or w.numel() == 0 or not w.is_floating_point():
        raise RunError(
            f"{path}: tensor 'w' is {w.dtype} of shape {tuple(w.shape)}; a {kind} net needs floating-point "
            f"numbers, {'(h, D)' if least == 2 else '(k, h, D)'}, h and D at least 1"
        )
    wanted = wanted_shapes(kind, tensors)
    for name, shape in wanted.items():
        given = tensors.get(name)
        if given is None:
            continue
        # labels are compared with 0 and never computed with
        if given.shape != shape or (given.dtype != w.dtype and name != "labels"):
            raise RunError(
                f"{path}: tensor {name!r} is {given.dtype} of shape {tuple(given.shape)}; beside w "
                f"{tuple(w.shape)} it must be {w.dtype} of shape {tuple(shape)}"
            )
    if kind == "multi_class" and sorted(set(tensors["labels"].tolist())) != [-1, 1]:
        raise RunError(
            f"{path}: tensor 'labels' holds {sorted(set(tensors['labels'].tolist()))[:6]}; the labels of "
            "subclasses are -1 and +1, both of them there"
        )


def wanted_shapes(kind: str, tensors: dict[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """The shapes that go with w."""
    w = tensors["w"]
    if kind == "multi_class":
        return {"labels": w.shape[-3:-2]}
    if kind == "two_layer":
        return {"v": w.shape[:-1], "b": w.shape[:-1]}
    outputs = (*w.shape[:-2], tensors["v"].shape[-2] if tensors["v"].dim() > 1 else 1)
    return {"v": (*outputs, w.shape[-2]), "b": outputs, "centre": w.shape[-1:]}


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
