"""Train a deep net on images: `fit(module, x, y, recipe)`.

    fitted = fit(PreActResNet(), images.x, images.y, Recipe(epochs=30), device="cuda")

Chance is drawn anew for each epoch from the seed and the epoch's number, so a training that goes on from a
checkpoint makes the same batches: bit for bit the same weights on a CPU, and on a GPU with `deterministic`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from tacit.base.checks import check_labels
from tacit.base.device import choose_device, layout
from tacit.base.progress import Progress, Silent
from tacit.errors import CallError, RunError
from tacit.train.deep.pictures import Shelf, epoch_of, shelf_of
from tacit.train.deep.recipe import Recipe
from tacit.train.deep.step import Training, kernels
from tacit.train.descent.logits import Checkpoints

LOOK = 50  # steps between looks at the loss: each makes the host wait


@dataclass(frozen=True)
class Watch:
    """What is looked at before the first epoch and after each, and from what on the training has done enough.

    `look` is given the module in eval mode, and returns one tensor of the same shape each time.
    """

    look: Callable[[nn.Module], Tensor]
    enough: Callable[[Tensor], bool] | None = None

    def ended(self, seen: list[Tensor]) -> bool:
        """Whether the last look was enough; the first one, before all training, never is."""
        return self.enough is not None and len(seen) > 1 and self.enough(seen[-1])


@dataclass(frozen=True)
class Fitted:
    """The trained module (the one that was given, in eval mode), its mean loss in each epoch, its speed.

    `watched` has what was looked at: row t after t epochs; None where nothing was.
    """

    module: nn.Module
    losses: Float[Tensor, " epochs"]
    images_per_second: float
    watched: Shaped[Tensor, "looks ..."] | None = None


def fit(
    module: nn.Module,
    x: Shaped[Tensor, "n ..."],
    y: Shaped[Tensor, " labels"],
    recipe: Recipe,
    *,
    seed: int = 0,
    device: str = "auto",
    top: int = 255,
    deterministic: bool = False,
    progress: Progress | None = None,
    checkpoints: Checkpoints | None = None,
    watch: Watch | None = None,
) -> Fitted:
    """Train the module in place, on the device, and return it there in eval mode.

    Images are bytes (n, H, W, C) from 0 to `top`, or floats in [0, 1] (n, C, H, W); the module takes (n, C, H, W)
    in [0, 1] and returns logits. On a GPU the step is compiled, recorded and in bfloat16; `deterministic` leaves
    out what does not repeat bit for bit. `checkpoints` keeps the state after epochs, and is asked for the last.
    `watch` looks at the module between epochs, and may end the training before its last.
    """
    device = choose_device(device)
    shelf = shelf_of(x, y, recipe, device, top)
    module.to(device, memory_format=layout(device))  # type: ignore[call-overload]
    check_outputs(module, shelf)
    with kernels(device, deterministic=deterministic):
        training = Training(module, shelf, recipe, device, deterministic=deterministic)
        losses: list[float] = []
        seen: list[Tensor] = []
        begun = 0
        if checkpoints is not None and (found := checkpoints.last()) is not None:
            begun, known = found
            losses = known.pop("losses").tolist()
            seen = list(known.pop("watched", torch.empty(0)))
            training.restore(known)
        if watch is not None and not seen:
            seen = [looked(watch, module)]
        step = probed(training)
        clock = time.monotonic()
        images = training.count * recipe.batch
        bar = (progress or Silent()).track(
            label(recipe), (recipe.epochs - begun) * images, recipe.batch
        )
        with bar as advance:
            for number in range(begun, recipe.epochs):
                if watch is not None and watch.ended(seen):
                    break
                losses.append(one_epoch(training, step, number, seed, advance))
                if watch is not None:
                    seen.append(looked(watch, module))
                if checkpoints is not None:
                    checkpoints.offer(number + 1, lambda: kept(training, losses, seen))
        spent = time.monotonic() - clock
    speed = (len(losses) - begun) * images / max(spent, 1e-9)
    watched = torch.stack(seen) if seen else None
    return Fitted(module.eval(), torch.tensor(losses), speed, watched)


def looked(watch: Watch, module: nn.Module) -> Tensor:
    """What is seen now, on the host."""
    with torch.no_grad():
        return watch.look(module.eval()).detach().cpu().clone()


def one_epoch(
    training: Training,
    step: Callable[[], object],
    number: int,
    seed: int,
    advance: Callable[[], None],
) -> float:
    """The mean loss over an epoch; a loss that is no number ends the training at its step."""
    epoch = epoch_of(len(training.shelf.y), training.recipe, stream(seed, "order", number))
    training.begin(number, epoch, stream(seed, "noise", number).initial_seed())
    for k in range(training.count):
        step()
        advance()
        if (k + 1) % LOOK == 0 or k + 1 == training.count:
            made = training.losses[: k + 1]
            if not bool(made.isfinite().all()):
                bad = int((~made.isfinite()).nonzero()[0]) + 1
                raise RunError(
                    f"the loss is no number at step {bad} of epoch {number + 1}: lower "
                    f"step={training.recipe.step:g}, or warm up longer; the last kept epoch is still there"
                )
    return float(training.losses.mean())


def kept(training: Training, losses: list[float], seen: list[Tensor]) -> dict[str, Tensor]:
    """What a checkpoint holds."""
    held = training.state() | {"losses": torch.tensor(losses)}
    return held | ({"watched": torch.stack(seen)} if seen else {})


def stream(*names: object) -> torch.Generator:
    """A random stream of its own for each purpose and epoch, on the CPU."""
    text = "/".join(map(str, names))
    return torch.Generator().manual_seed(
        int.from_bytes(blake2b(text.encode(), digest_size=7).digest())
    )


def label(recipe: Recipe) -> str:
    """What the bar says of what it counts."""
    return f"{'clean' if recipe.ball is None else 'adversarial'} training, images"


def check_outputs(module: nn.Module, shelf: Shelf) -> None:
    """Labels that the module has logits for; it takes the images."""
    rows = torch.arange(2, device=shelf.y.device)
    x, _ = shelf.batch(rows, torch.zeros(2, 3, dtype=torch.long, device=shelf.y.device))
    module.eval()
    try:
        with torch.no_grad():
            scores = module(x)
    except (RuntimeError, ValueError, TypeError) as error:
        told = " ".join(str(error).split())[:300]
        raise CallError(
            f"the module does not take images of shape {tuple(x.shape[1:])}: {told}"
        ) from error
    if scores.dim() != 2 or scores.shape[1] < 2:
        raise CallError(
            f"the module returned shape {tuple(scores.shape)}: it returns logits (n, classes)"
        )
    check_labels(shelf.y, scores.shape[1])


def probed(training: Training) -> Callable[[], object]:
    """The step, made ready; where the GPU's memory does not hold it, an error that names the batch that fits."""
    try:
        return training.ready()
    except torch.cuda.OutOfMemoryError as error:
        torch.cuda.empty_cache()
        fits = largest_batch(training)
        raise RunError(
            f"batch={training.recipe.batch} does not fit into the GPU's memory; {fits or 'not even 1'} does. "
            "With batch norm a smaller batch is another recipe: choose it yourself, and lower the step with it"
        ) from error


def largest_batch(training: Training) -> int:
    """The batch, halved until one plain step fits."""
    batch = training.recipe.batch // 2
    while batch:
        try:
            rows = torch.arange(batch, device=training.device)
            still = torch.zeros(batch, 3, dtype=torch.long, device=training.device)
            x, y = training.shelf.batch(rows, still)
            shown, y = training._shown(x, y)
            with training._half():
                loss = torch.nn.functional.cross_entropy(training.view(shown).float(), y)
            torch.autograd.grad(loss, training.moving)
            return batch
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            batch //= 2
    return 0
