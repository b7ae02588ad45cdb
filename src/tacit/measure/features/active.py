"""How many neurons are active: the share of positive numbers before ReLUs (allenzhu2020, Figure 5)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tacit.nn.modules import check_in_use

AT_ONCE = 250  # images: wide nets have hundreds of channels at every pixel


@torch.no_grad()
def active_shares(
    before: Callable[[nn.Module], Sequence[nn.Module]],
    net: nn.Module,
    x: Float[Tensor, "n C H W"],
) -> Float[Tensor, "layers n"]:
    """For each module of `before(net)`, the share of what it puts out that is above 0, image by image.

    These modules are what the net applies its ReLUs to. Channels and positions count alike; the net is in eval
    mode, and what it computes is left as it is.
    """
    check_in_use(net)
    shares = []
    with recorded(before(net)) as seen:
        for part in x.split(AT_ONCE):
            net(part)
            shares.append(torch.stack(seen))
            seen.clear()
    return torch.cat(shares, 1)


@contextmanager
def recorded(modules: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    """A list that gets, of each module that is run, the share of each image's outputs that is above 0."""
    seen: list[Tensor] = []

    def note(_module: nn.Module, _inputs: object, out: Tensor) -> None:
        seen.append((out > 0).flatten(1).float().mean(1))

    hooks = [module.register_forward_hook(note) for module in modules]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
