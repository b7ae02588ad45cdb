"""One step of training: take a batch, attack it, move the weights. On a GPU it is recorded once and replayed.

All that a step reads lies on the device: the images, the epoch's order and moves, the step sizes and radii of the
whole training, and the number of the step, which it counts up itself. So a recorded step (a CUDA graph) needs
nothing from the host, and the host waits for nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tacit.attack.inner import perturbation, seen
from tacit.base.device import layout
from tacit.base.recording import recorded
from tacit.train.deep.pictures import Epoch, Shelf
from tacit.train.deep.recipe import Recipe
from tacit.train.deep.views import attacked_view, compiled, training_view

State = dict[str, Tensor]
SMALLEST = 16


class Training:
    """A module on its way, with all that its steps read and write."""

    def __init__(
        self, module: nn.Module, shelf: Shelf, recipe: Recipe, device: str, *, deterministic: bool
    ) -> None:
        self.module, self.shelf, self.recipe, self.device = module, shelf, recipe, device
        self.count = len(shelf.y) // recipe.batch
        fast = device == "cuda" and not deterministic and may_compile(shelf)
        make = compiled if fast else _as_it_is
        self.view = make(training_view(module).train())
        self.attacked = make(attacked_view(module)) if recipe.ball else None
        self.generator = torch.Generator(device)
        self.rates = torch.tensor(recipe.step_sizes(self.count), device=device)
        self.radii = torch.tensor(recipe.radii(self.count), device=device)
        self.moving: list[Tensor] = [p for p in module.parameters() if p.requires_grad]
        self.velocity = [torch.zeros_like(p) for p in self.moving]
        self.now = torch.zeros(1, dtype=torch.long, device=device)
        self.losses = torch.zeros(self.count, device=device)
        empty = torch.zeros(self.count, recipe.batch, 4, dtype=torch.long, device=device)
        self.order, self.moves = empty[..., 0].clone(), empty[..., 1:].clone()

    def begin(self, number: int, epoch: Epoch, seed: int) -> None:
        """Lay out an epoch, numbered from 0; `seed` is of the noise and starts that its attacks draw."""
        self.order.copy_(epoch.order)
        self.moves.copy_(epoch.moves)
        self.now.fill_(number * self.count)
        self.generator.manual_seed(seed)

    def step(self) -> None:
        """The next batch of the epoch."""
        k = self.now % self.count  # chosen by index_select, as [k] would ask the host for its value
        order, moves = (t.index_select(0, k).squeeze(0) for t in (self.order, self.moves))
        x, y = self.shelf.batch(order, moves)
        x = x.contiguous(memory_format=layout(self.device))
        shown, y = self._shown(x, y)
        with self._half():
            scores = self.view(shown)
        loss = torch.nn.functional.cross_entropy(scores.float(), y)
        slopes = torch.autograd.grad(loss, self.moving, materialize_grads=True)
        self._move(list(slopes))
        self.losses.index_copy_(0, k, loss.detach().view(1))
        self.now += 1

    def _shown(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The images that are trained on: as they are, attacked, or attacked and noisy."""
        ball = self.recipe.ball
        if ball is None or self.attacked is None:
            return x, y
        noise, start = ball.noise(x, self.generator), ball.start(x, self.generator)
        with self._half():
            delta = perturbation(
                self.attacked, x, y, ball, start=start, noise=noise, scale=self._at(self.radii)
            )
        shown = seen(x + delta, noise).contiguous(memory_format=layout(self.device))
        return shown, y.repeat(len(shown) // len(x))

    def _move(self, slopes: list[Tensor]) -> None:
        """v <- momentum v + g + decay w; w <- w - rate v (Nesterov: rate (g + decay w + momentum v))."""
        recipe, rate = self.recipe, self._at(self.rates)
        with torch.no_grad():
            slopes = list(torch._foreach_add(slopes, self.moving, alpha=recipe.decay))
            torch._foreach_mul_(self.velocity, recipe.momentum)
            torch._foreach_add_(self.velocity, slopes)
            way = self.velocity
            if recipe.nesterov:
                way = list(torch._foreach_add(slopes, self.velocity, alpha=recipe.momentum))
            torch._foreach_sub_(self.moving, list(torch._foreach_mul(way, rate)))

    def _at(self, table: Tensor) -> Tensor:
        """Its number for this step; the last one where a recording warms up beyond the training's end."""
        return table.index_select(0, self.now.clamp(max=len(table) - 1)).squeeze()

    def _half(self) -> torch.autocast:
        """bfloat16 products on a GPU; float32 elsewhere."""
        return torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda")

    def state(self) -> State:
        """All that moves, by name, on the host."""
        held = {f"module/{name}": t for name, t in self.module.state_dict().items()}
        held |= {f"velocity/{k}": v for k, v in enumerate(self.velocity)}
        return {name: t.detach().cpu().clone() for name, t in held.items()}

    def restore(self, known: State) -> None:
        """Back to a state, in place."""
        own = self.module.state_dict()
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(known[f"module/{name}"])
            for k, velocity in enumerate(self.velocity):
                velocity.copy_(known[f"velocity/{k}"])

    def ready(self) -> Callable[[], object]:
        """What makes one step: the step itself, or its recording; the state is what it was before."""
        if self.device != "cuda":
            return self.step
        before = self.state()
        replay = recorded(self.step, [self.generator])
        self.restore(before)
        return replay


def may_compile(shelf: Shelf) -> bool:
    """Not images of fewer than SMALLEST pixels a side: they end as maps of one pixel.

    There channels last and channels first are the same, and torch 2.11's compiler expects gradients in the one
    and gets them in the other.
    """
    return min(shelf.sides) >= SMALLEST


def _as_it_is(view: nn.Module) -> nn.Module:
    """Not compiled."""
    return view


@contextmanager
def kernels(device: str, *, deterministic: bool) -> Iterator[None]:
    """On a GPU: the fastest kernels for these sizes, or such as give the same bits again."""
    if device != "cuda":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA starts
    cudnn = torch.backends.cudnn
    before = torch.get_deterministic_debug_mode(), cudnn.benchmark, cudnn.deterministic
    torch.set_deterministic_debug_mode("error" if deterministic else "default")
    cudnn.benchmark, cudnn.deterministic = not deterministic, deterministic
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before[0])
        cudnn.benchmark, cudnn.deterministic = before[1:]
