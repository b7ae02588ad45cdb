"""Images, and what nets make of them, clean and attacked: what Figures 3, 4, 6 and Table 1 share (Section 5.2).

The released code trains on the first 50,000 of MNIST's 60,000 training images and tests on the last 10,000; the
test images of MNIST are never seen. Other data sets have their own two parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int64
from torch import Tensor

from tacit.attack import apgd, cross_entropy
from tacit.attack.ball.driver import AnyLoss
from tacit.base.identity import identity_of
from tacit.base.linalg import power
from tacit.base.threads import cores, side_by_side
from tacit.data.images import load_images
from tacit.errors import CallError
from tacit.lab import Bench
from tacit.measure.rank import stable_rank_of_gram
from tacit.nets import PolyReLUNet

BOX = (0.0, 1.0)
HELD_OUT = 6  # of MNIST's 60,000 the last 60,000/6 are the released code's test set
ROWS = 1000
TENSORS = ("x", "y", "kind", "test_x", "test_y", "test_kind")

Nets = dict[tuple[float, int], PolyReLUNet]
"""The net of each (p, seed)."""

Seen = tuple[Float[Tensor, "n D"], Float[Tensor, "n 1"] | None]
"""Points as `PolyReLUNet.prepared` gives them: once, for they do not change with the epochs."""


@dataclass(frozen=True)
class Pictures:
    """Pixels in [0, 1], or features, as rows; labels modulo the number of classes; `kind` is the label itself."""

    x: Float[Tensor, "n D"]
    y: Int64[Tensor, " n"]
    kind: Int64[Tensor, " n"]
    test_x: Float[Tensor, "m D"]
    test_y: Int64[Tensor, " m"]
    test_kind: Int64[Tensor, " m"]
    shape: tuple[int, ...]
    name: str

    @cached_property
    def centre(self) -> Float[Tensor, " D"]:
        """The mean training image, on the CPU: the same wherever the nets are trained."""
        return self.x.cpu().mean(0)

    @cached_property
    def digests(self) -> dict[str, str]:
        """Of each of the tensors."""
        return {name: identity_of(getattr(self, name)) for name in TENSORS}

    def identity(self) -> tuple[object, ...]:
        """What a part that is made of them depends on: hashed once, for all parts."""
        return (Pictures, self.digests, self.shape)

    def to(self, device: str) -> Pictures:
        """On that device."""
        return replace(self, **{name: getattr(self, name).to(device) for name in TENSORS})


def pictures_of(dataset: str, classes: int) -> Pictures:
    """The training and the test points of the exhibits."""
    train = load_images(dataset, "train")
    if classes > len(train.classes):
        raise CallError(f"classes={classes}: {dataset} has {len(train.classes)} of them")
    x, kind = train.pixels(), torch.from_numpy(train.y)
    if dataset in ("mnist", "fashion-mnist"):
        last = len(x) - len(x) // HELD_OUT
        x, kind, test_x, test_kind = x[:last], kind[:last], x[last:], kind[last:]
    else:
        test = load_images(dataset, "test")
        test_x, test_kind = test.pixels(), torch.from_numpy(test.y)
    shape = tuple(train.x.shape[1:])
    return Pictures(x, kind % classes, kind, test_x, test_kind % classes, test_kind, shape, dataset)


def workers(device: str) -> int:
    """Threads for nets side by side: a GPU is shared by its own means (and starts badly from two threads)."""
    return 1 if device == "cuda" else cores()


def rightly(logits: Float[Tensor, "*e n C"], y: Int64[Tensor, " n"]) -> Float[Tensor, "*e"]:
    """How many points have a positive margin: a tie is an error, as it is for an attack."""
    own = y.expand(*logits.shape[:-2], -1).unsqueeze(-1)
    others = logits.scatter(-1, own, -torch.inf).amax(-1)
    return (logits.gather(-1, own).squeeze(-1) > others).to(logits.dtype).sum(-1)


def looks(
    net: PolyReLUNet, seen: Seen
) -> Iterator[tuple[slice, Float[Tensor, "*e B h"], Float[Tensor, "*e B C"]]]:
    """Rows, what their hidden neurons pass on but for the neurons' norms, and their logits, batch by batch."""
    (u, size), (directions, norm) = seen, net.directions()
    v = net.v if norm is None else net.v * norm.mT
    for i in range(0, len(u), ROWS):
        rows = slice(i, i + ROWS)
        along = power((u[rows] @ directions.mT).clamp_min_(0), net.p)
        along = along if size is None else along.mul_(size[rows])
        yield rows, along, along @ v.mT + (0 if net.b is None else net.b.unsqueeze(-2))


def accuracy(nets: Sequence[PolyReLUNet], seen: Seen, y: Int64[Tensor, " n"]) -> np.ndarray:
    """The share of points whose largest logit is their label's, (p, seed)."""

    def one(net: PolyReLUNet) -> Tensor:
        right = [rightly(logits, y[rows]) for rows, _, logits in looks(net, seen)]
        return torch.stack(right).sum(0) / len(y)

    return torch.stack(side_by_side(one, nets, workers(y.device.type))).cpu().numpy()


def curves_at(
    nets: Sequence[PolyReLUNet], seen: Seen, y: Int64[Tensor, " n"]
) -> dict[str, np.ndarray]:
    """train_accuracy and stable_rank, (p, seed) each, from one look at the hidden features.

    The stable rank of the n x h features needs only their h x h Gram matrix, summed batch by batch.
    """

    def one(net: PolyReLUNet) -> tuple[Tensor, Tensor]:
        h, norm = net.w.shape[-2], net.directions()[1]
        gram = net.w.new_zeros(*net.w.shape[:-2], h, h)
        right = net.w.new_zeros(net.w.shape[:-2])
        for rows, along, logits in looks(net, seen):
            right += rightly(logits, y[rows])
            gram += along.mT @ along
        gram = gram if norm is None else gram * norm * norm.mT
        return right / len(y), stable_rank_of_gram(gram)

    found = side_by_side(one, nets, workers(y.device.type))
    share, rank = (torch.stack(values).cpu().numpy() for values in zip(*found, strict=True))
    return {"train_accuracy": share, "stable_rank": rank}


@dataclass(frozen=True)
class Attack:
    """One column of robust accuracies: a norm, its radii, on how many test points."""

    norm: str
    radii: tuple[float, ...]
    points: int


def outlived(
    nets: Nets,
    bench: Bench,
    pictures: Pictures,
    attack: Attack,
    *,
    steps: int,
    loss: AnyLoss = cross_entropy,
    starts: Sequence[str] = ("random",),
    larger_balls: bool = False,
    box: tuple[float, float] | None = BOX,
    name: str | None = None,
) -> xr.DataArray:
    """How many of the radii, in ascending order, each of the first test points outlives, (p, seed, point).

    As released: APGD on the cross-entropy from one random start (AutoAttack's apgd-ce), in the box [0, 1]; in l1
    AutoAttack has five starts and `larger_balls`. A point that is broken leaves the attack, and one that a
    smaller radius broke never enters it. `name` is that of the parts.
    """
    x, y = (t[: attack.points].to(bench.device) for t in (pictures.test_x, pictures.test_y))
    ps = sorted({p for p, _ in nets})

    def of_seed(seed: int) -> xr.Dataset:
        """One part of the run."""

        def one(p: float) -> np.ndarray:
            count = torch.zeros(len(x), dtype=torch.int16)
            left = torch.arange(len(x), device=x.device)
            # one call a radius: a call with several gives the larger ones a second, stronger search
            for radius in sorted(attack.radii):
                if len(left):
                    found = apgd(
                        nets[p, seed], x[left], y[left], (radius,), norm=attack.norm, box=box, loss=loss,
                        starts=starts, steps=steps, seed=seed, larger_balls=larger_balls,
                    )  # fmt: skip
                    left = left[~found.broken[0]]
                    count[left.cpu()] += 1
            return count.numpy()

        values = np.stack(side_by_side(one, ps, workers(bench.device)))
        return xr.Dataset({"outlived": (("p", "point"), values)}, coords={"p": ps})

    seeds = sorted({seed for _, seed in nets})
    parts = [
        bench.part(f"{name or f'attack-{attack.norm}'}-{seed}", partial(of_seed, seed))
        for seed in bench.steps(seeds, f"{name or f'l{attack.norm}'} attack")
    ]
    whole = xr.concat(parts, xr.Variable("seed", seeds)).outlived
    return whole.transpose("p", "seed", "point")


def unbroken(outlived: xr.DataArray, radii: Sequence[float]) -> xr.DataArray:
    """Whether a point is unbroken at each radius: what broke it breaks it at every larger one."""
    index = xr.DataArray(np.arange(len(radii)), dims="radius", coords={"radius": sorted(radii)})
    return outlived > index
