"""Deep nets of several papers: images, trainings as jobs, nets from the store."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from tacit.base.device import layout
from tacit.base.identity import identity_of
from tacit.data.images import Images, load_images
from tacit.errors import CallError
from tacit.lab import Bench
from tacit.lab.models.shelf import Recipe as StoreRecipe
from tacit.lab.models.store import Checkpoint, Made
from tacit.nn.layered import LayeredNet, Net
from tacit.train.deep.fit import Watch, fit
from tacit.train.deep.recipe import Recipe

PROBE = 16  # images of the step that is timed before a long training on a CPU


@dataclass(frozen=True, eq=False)
class DeepImages:
    """Training and test images as bytes (n, H, W, C) from 0 to `top`, with labels."""

    name: str
    x: UInt8[Tensor, "n H W C"]
    y: Int64[Tensor, " n"]
    test_x: UInt8[Tensor, "m H W C"]
    test_y: Int64[Tensor, " m"]
    top: int

    @cached_property
    def digest(self) -> str:
        """Of the training images and labels, for recipes."""
        return identity_of(self.x, self.y, self.top)

    @property
    def channels(self) -> int:
        """1 or 3."""
        return self.x.shape[3]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one image as a net sees it, (C, H, W)."""
        _, height, width, channels = self.x.shape
        return channels, height, width

    def tested(
        self, points: int, device: str
    ) -> tuple[Float[Tensor, "k C H W"], Int64[Tensor, " k"]]:
        """The first test images as pixels in [0, 1], on the device, with their labels."""
        x = self.test_x[:points].to(device).permute(0, 3, 1, 2).float() / self.top
        return x.contiguous(memory_format=layout(device)), self.test_y[:points].to(device)

    def standardise(self, net: Net) -> Net:
        """The net with the mean and standard deviation of the training images' channels."""
        return net.standardised(*self.moments)

    @cached_property
    def moments(self) -> tuple[list[float], list[float]]:
        """Mean and standard deviation of each channel of the training images, from how often each byte occurs."""
        values = torch.arange(256, dtype=torch.float64) / self.top
        counts = torch.stack([torch.bincount(c.flatten(), minlength=256) for c in self.x.unbind(3)])
        n = counts.sum(1)
        mean = counts.double() @ values / n
        square = (counts * (values - mean.unsqueeze(1)).square()).sum(1) / (n - 1)
        return mean.tolist(), square.sqrt().tolist()


def deep_images(name: str, *, train: int = 0, side: int = 0, merged: int = 0) -> DeepImages:
    """A data set by name: its first `train` training images (0: all), averaged down to side x side (0: not).

    `merged`: classes in that many groups of neighbours (0: not), as li2025's first five and last five.
    """
    both = [load_images(name, part) for part in ("train", "test")]
    (x, y), (test_x, test_y) = (arrays(part, side) for part in both)
    if merged:
        classes = len(both[0].classes)
        if classes % merged:
            raise CallError(
                f"merged={merged}: {name} has {classes} classes, which it does not divide"
            )
        y, test_y = (labels // (classes // merged) for labels in (y, test_y))
    if not 0 <= train <= len(x):
        raise CallError(f"train={train}: {name} has {len(x)} training images")
    count = train or len(x)
    return DeepImages(name, x[:count], y[:count], test_x, test_y, both[0].top)


def arrays(images: Images, side: int) -> tuple[Tensor, Tensor]:
    """Bytes and labels; an image of side x side has the means of equal squares, rounded."""
    x, y = torch.from_numpy(images.x), torch.from_numpy(images.y)
    if not side:
        return x, y
    whole = x.shape[1]
    if whole % side:
        raise CallError(
            f"side={side}: images of {images.name} are {whole} pixels wide; choose a divisor of it"
        )
    few = torch.nn.functional.avg_pool2d(x.permute(0, 3, 1, 2).float(), whole // side)
    return few.permute(0, 2, 3, 1).round().to(torch.uint8).contiguous(), y


@dataclass(frozen=True, eq=False)
class Job:
    """A training: where it starts (a net, or the name of the job whose net it goes on from), how, on what.

    `prepare` changes a copy of that net first, say by drawing layers anew or freezing some; `watch` looks at the
    net between epochs, and is asked whether that is enough.
    """

    start: LayeredNet | str
    recipe: Recipe
    images: DeepImages
    seed: int
    prepare: Callable[[LayeredNet], LayeredNet] | None = None
    watch: Watch | None = None


@dataclass(frozen=True, eq=False)
class Trained:
    """A net in eval mode on the bench's device, and what was watched: row t after t epochs."""

    net: LayeredNet
    watched: Float[np.ndarray, "looks ..."] | None = None


def deep_nets(bench: Bench, jobs: Mapping[str, Job]) -> dict[str, LayeredNet]:
    """The nets in eval mode on the bench's device: from the store, or trained and kept, one after the other."""
    return {name: each.net for name, each in deep_trainings(bench, jobs).items()}


def deep_trainings(bench: Bench, jobs: Mapping[str, Job]) -> dict[str, Trained]:
    """The same with what was watched."""
    found: dict[str, Trained] = {}
    for name, job in bench.steps(jobs.items(), "nets"):
        if isinstance(job.start, str):
            if job.start not in found:
                raise CallError(
                    f"training {name!r} goes on from {job.start!r}, which is not there: train that first"
                )
            job = replace(job, start=found[job.start].net)
        found[name] = one_training(bench, name, job)
    return found


def one_training(bench: Bench, name: str, job: Job) -> Trained:
    """One net by its recipe."""
    assert isinstance(job.start, LayeredNet)
    start = copy.deepcopy(job.start).to("cpu")
    start = job.prepare(start) if job.prepare else start
    recipe = recipe_of(job, start)

    def train(todo: list[str], checkpoint: Checkpoint) -> Mapping[str, Made]:
        (key,) = todo
        enough_time(bench, job)
        net, images = copy.deepcopy(start), job.images
        fitted = fit(
            net, images.x, images.y, job.recipe,
            seed=job.seed, device=bench.device, top=images.top, progress=bench.progress, checkpoints=checkpoint,
            watch=job.watch,
        )  # fmt: skip
        curves = {} if fitted.watched is None else {"watched": fitted.watched.numpy()}
        return {key: Made(net.to("cpu"), curves)}

    # looks alone leave the net as it is, so that one that was trained without them is the same net
    look = None if job.watch is None else {"look": identity_of(job.watch.look)}
    made = bench.models.made({name: recipe}, train, look)[name]
    net = made.net.freeze_below(1).eval().to(bench.device, memory_format=layout(bench.device))
    assert isinstance(net, LayeredNet)
    return Trained(net, made.curves.get("watched"))


def recipe_of(job: Job, start: LayeredNet) -> StoreRecipe:
    """What makes the net, as JSON has it."""
    how = asdict(job.recipe)
    if how["ball"] is not None:
        how["ball"]["norm"] = str(how["ball"]["norm"])
    more: StoreRecipe = {"frozen": start.frozen} if start.frozen else {}
    if job.watch is not None and job.watch.enough is not None:
        more = {**more, "enough": identity_of(job.watch)}
    return {
        "training": "deep",
        "data": job.images.name,
        "points": job.images.digest,
        "recipe": how,
        "seed": job.seed,
        "start": identity_of(start.state()),
        "code": identity_of(fit),
        **more,
    }


def enough_time(bench: Bench, job: Job) -> None:
    """A call error where a training at paper scale would run on a CPU that nobody insisted on."""
    if bench.scale != "paper" or bench.device != "cpu" or bench.insisted:
        return
    hours = cpu_hours(job)
    raise CallError(
        f"no GPU is seen here, and one net of this exhibit would take about {hours:,.0f} hours on this CPU: run "
        "it on a machine with a GPU, choose --scale laptop, or insist with --device cpu"
    )


def cpu_hours(job: Job) -> float:
    """By the time of one step on few images."""
    few = replace(job.recipe, epochs=1, batch=PROBE, growth=0.0)
    assert isinstance(job.start, LayeredNet)
    net = copy.deepcopy(job.start).to("cpu")
    x, y = job.images.x[:PROBE], job.images.y[:PROBE]
    began = time.monotonic()
    fit(net, x, y, few, device="cpu", top=job.images.top)
    return (time.monotonic() - began) / PROBE * len(job.images.y) * job.recipe.epochs / 3600
