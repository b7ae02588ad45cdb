"""Copies of a module that share its numbers: one to train, one to attack, each compiled in its own way."""

import copy
import importlib.util
from typing import TypeVar

import torch
from torch import nn

Module = TypeVar("Module", bound=nn.Module)

VARIANTS = 64  # of one block: shapes, strides, with and without gradients of weights


def training_view(module: Module) -> Module:
    """A copy with the very same parameters and buffers: what moves in one moves in the other."""
    held = (*module.parameters(), *module.buffers())
    return copy.deepcopy(module, {id(tensor): tensor for tensor in held})


def attacked_view(module: Module) -> Module:
    """A copy in eval mode whose parameters share their memory with the module's and take no gradient.

    An attack asks for the gradient in the image alone, which saves a third of its work. It sees the running
    batch statistics, and leaves them alone.
    """
    memo: dict[int, object] = {id(b): b for b in module.buffers()}
    memo |= {id(p): nn.Parameter(p.detach(), requires_grad=False) for p in module.parameters()}
    return copy.deepcopy(module, memo).eval()


def compiled(view: Module) -> Module:
    """The view, compiled where there is a compiler: block by block if it has `blocks` (alike, so done once)."""
    if importlib.util.find_spec("triton") is None:
        return view
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, VARIANTS)
    blocks = getattr(view, "blocks", None)
    for part in blocks if isinstance(blocks, nn.ModuleList) else (view,):
        part.compile(dynamic=False)
    return view
