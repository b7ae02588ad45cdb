"""Extractors by name, and of the user's own modules."""

import copy
import difflib
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tacit.base.identity import identity_of
from tacit.data.features import efficientnet
from tacit.data.features.extractor import Extractor
from tacit.data.features.transform import ImageTransform
from tacit.errors import CallError, RunError

KNOWN = ("pixels", efficientnet.NAME, "timm:resnet152", "open_clip:ViT-B-32/openai")


def make_extractor(
    name_or_module: str | Callable[[Tensor], Tensor],
    transform: Callable[[Tensor], Tensor] | None = None,
    name: str | None = None,
) -> Extractor:
    """An extractor by name (`named_extractor`), or of any torch module or function on tensors.

    The module gets what `transform` makes of images uint8 (b, H, W, C), by default float32 (b, C, H, W) in
    [0, 1], and returns (b, d). A module is copied: training yours on leaves these features as they are.
    """
    if isinstance(name_or_module, str):
        if transform is not None or name is not None:
            raise CallError(
                f"{name_or_module!r} brings its own transform and name: give a module, or leave both away"
            )
        return named_extractor(name_or_module)
    if not callable(name_or_module):
        raise CallError(
            f"an extractor is a name or a module, not a {type(name_or_module).__name__}: names are "
            f"{', '.join(KNOWN)}"
        )
    module = name_or_module
    if isinstance(module, nn.Module):
        module = copy.deepcopy(module).requires_grad_(False).eval()
    transform = transform or ImageTransform()
    called = name or str(getattr(module, "__name__", type(module).__name__))
    return Extractor(called, module, transform, identity_of(module, transform))


def named_extractor(name: str, size: int | None = None) -> Extractor:
    """`pixels`, `efficientnet-lite0`, `timm:MODEL` or `open_clip:MODEL/WEIGHTS`.

    `size` is the side that images are resized to: the net's own where None (`pixels`: as they are). A
    smaller one is faster, and further from what the net was trained on; timm's vision transformers take
    only their own.
    """
    kind, _, rest = name.partition(":")
    if name == "pixels":
        return _extractor(name, _Pixels(), ImageTransform(size))
    if name == efficientnet.NAME:
        side = efficientnet.SIZE if size is None else size
        transform = efficientnet.lite0_transform(side)
        module = efficientnet.Lite0Features(efficientnet.lite0_net(side))
        return _extractor(name, module, transform)
    if kind == "timm" and rest:
        return _timm(name, rest, size)
    model, _, weights = rest.partition("/")
    if kind == "open_clip" and model and weights:
        return _open_clip(name, model, weights, size)
    near = difflib.get_close_matches(name, KNOWN, 1, 0.5)
    raise CallError(
        f"there is no extractor {name!r}{f' (did you mean {near[0]!r}?)' if near else ''}: choose one of "
        f"{', '.join(KNOWN)} (timm and open_clip with any model of theirs), as in --set extractor=pixels; in "
        "Python also a torch module of your own, by make_extractor(module)"
    )


def _extractor(name: str, module: nn.Module, transform: ImageTransform) -> Extractor:
    """A named net: its identity is its name, its class, its weights and its transform."""
    module = module.requires_grad_(False).eval()
    identity = identity_of(name, type(module), dict(module.state_dict()), transform)
    return Extractor(name, module, transform, identity)


class _Pixels(nn.Module):
    """(b, C, H, W) -> (b, H W C), in the order in which files have the pixels."""

    def forward(self, x: Float[Tensor, "b C H W"]) -> Float[Tensor, "b D"]:
        """Channels last again, and flat."""
        return x.permute(0, 2, 3, 1).flatten(1)


def _timm(name: str, model: str, size: int | None) -> Extractor:
    """A pretrained net of timm without its classifier (num_classes=0): its pooled features."""
    timm = _library("timm", name)
    if not timm.is_model(model.partition(".")[0]):
        near = difflib.get_close_matches(model, timm.list_models(), 3, 0.5)
        raise CallError(
            f"timm has no model {model!r}; near to it: {', '.join(near) or 'nothing'} (timm.list_models())"
        )
    with _loading(name):
        net = timm.create_model(model, pretrained=True, num_classes=0)
    config = timm.data.resolve_model_data_config(net)
    side = size or int(config["input_size"][-1])
    transform = ImageTransform(side, tuple(config["mean"]), tuple(config["std"]), rgb=True)
    return _extractor(name, net, transform)


def _open_clip(name: str, model: str, weights: str, size: int | None) -> Extractor:
    """The image tower of a CLIP model: image embeddings (li2025, Appendix E.2, Figure 10)."""
    open_clip = _library("open_clip", name)
    if model not in open_clip.list_models():
        near = difflib.get_close_matches(model, open_clip.list_models(), 3, 0.5)
        raise CallError(
            f"open_clip has no model {model!r}; near to it: {', '.join(near) or 'nothing'} "
            "(open_clip.list_models())"
        )
    with _loading(name):
        clip = open_clip.create_model(model, pretrained=weights, force_image_size=size)
    tower = clip.visual
    side = tower.image_size if isinstance(tower.image_size, int) else tower.image_size[0]
    transform = ImageTransform(side, tuple(tower.image_mean), tuple(tower.image_std), rgb=True)
    return _extractor(name, tower, transform)


def _library(package: str, name: str) -> Any:
    """An optional library, or how to get it."""
    other = f"or use {efficientnet.NAME!r}, whose weights need no hub"
    try:
        return importlib.import_module(package)
    except ImportError as error:
        wheel = {"open_clip": "open_clip_torch"}.get(package, package)
        raise RunError(
            f"{name} needs the package {package} ({error}): pip install {wheel}, {other}"
        ) from error
    except RuntimeError as error:  # as torchvision's, when it was built for another torch
        raise RunError(
            f"{name} needs the package {package}, which fails at import ({error}): install the torchvision that "
            f"belongs to torch {torch.__version__}, {other}"
        ) from error


@contextmanager
def _loading(name: str) -> Iterator[None]:
    """Hubs fail in many ways (no network, no such weights) while a library loads weights: each is a RunError."""
    try:
        yield
    except Exception as error:
        line = next(iter(str(error).splitlines()), type(error).__name__)
        raise RunError(
            f"the weights of {name} cannot be loaded ({line}): check the name and the network, "
            f"or use {efficientnet.NAME!r}, whose weights need no hub"
        ) from error
