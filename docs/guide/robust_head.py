"""Make the head of your classifier robust: ordinary and PolyReLU heads on the same frozen features.

    python docs/guide/robust_head.py                     CIFAR-10 read by efficientnet-lite0 (extra `features`)
    python docs/guide/robust_head.py --dataset digits    nothing to download: the pixels are the features

robust-head.md tells what came out and what it means.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from torch import Tensor, nn

from tacit import PolyReLUClassifier
from tacit.attack import apgd, minimal
from tacit.certify import crown_radius
from tacit.data.features import Extractor, features_of, named_extractor
from tacit.data.images import Features, Images, load_images
from tacit.errors import TacitError

COLOURS = {
    "logistic regression": "tab:gray",
    "logistic regression, small C": "tab:orange",
    "MLP": "tab:red",
    "PolyReLU, p = 3": "tab:blue",
    "PolyReLU, p = 3, subclasses": "tab:green",
}


@dataclass(frozen=True)
class Head:
    """A fitted head: its accuracy, the radii of some points in feature space, what is left in pixel space."""

    name: str
    accuracy: float
    lower: np.ndarray
    upper: np.ndarray
    end_to_end: np.ndarray

    @property
    def row(self) -> str:
        """A line of the table."""
        left = "".join(f"{share:8.2f}" for share in self.end_to_end)
        radii = f"{np.median(self.lower):10.3g}{np.median(self.upper):10.3g}"
        return f"{self.name:30}{self.accuracy:9.3f}{radii}  {left}"


class Whole(nn.Module):
    """Images (b, H, W, C) with pixels in [0, 1] to one score a class: transform, backbone, head."""

    def __init__(self, extractor: Extractor, head: nn.Module) -> None:
        super().__init__()
        self.transform, self.backbone, self.head = extractor.transform, extractor.module, head

    def forward(self, x: Tensor) -> Tensor:
        """The transform takes pixels on the scale 0..255."""
        return self.head(self.backbone(self.transform(255 * x)))


def chosen(images: Images, count: int, seed: int) -> Images:
    """So many of the images, by chance."""
    rows = np.random.default_rng(seed).permutation(len(images))[:count]
    return replace(images, x=images.x[rows], y=images.y[rows])


def models(x: Tensor, seed: int) -> dict[str, Any]:
    """The heads, not fitted yet. Small C: 1 over the mean squared length of the centred features."""
    small = 1 / float(x.var(0).sum())
    found = {"supervision": "discovered", "n_subclasses": 3}
    return {
        "logistic regression": LogisticRegression(max_iter=1000),
        "logistic regression, small C": LogisticRegression(C=small, max_iter=1000),
        "MLP": MLPClassifier((500,), random_state=seed),
        "PolyReLU, p = 3": PolyReLUClassifier(p=3, width=500, random_state=seed),
        "PolyReLU, p = 3, subclasses": PolyReLUClassifier(
            p=3, width=500, random_state=seed, **found
        ),
    }


def module_of(model: Any) -> nn.Module:
    """The fitted head as a torch module, from features to one score a class."""
    if isinstance(model, PolyReLUClassifier):
        return model.to_module()
    if isinstance(model, MLPClassifier):
        pairs = list(zip(model.coefs_, model.intercepts_, strict=True))
    else:
        pairs = [(model.coef_.T, model.intercept_)]
    layers: list[nn.Module] = []
    for weight, bias in pairs:
        layer = nn.Linear(*weight.shape)
        layer.load_state_dict({"weight": torch.tensor(weight.T), "bias": torch.tensor(bias)})
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval()


def radii_of(model: Any, x: Tensor, y: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Each point's l2 radius in feature space: certified from below, attacked from above; in float64."""
    if isinstance(model, PolyReLUClassifier):
        return model.robust_radius(x.numpy(), y.numpy())
    head, x = module_of(model).double(), x.double()
    return crown_radius(head, x, y).numpy(), minimal(head, x, y).radius.numpy()


def end_to_end(
    extractor: Extractor, head: nn.Module, images: Images, radii: Sequence[float]
) -> np.ndarray:
    """The share of images left at each l2 radius in pixel space, pixels in [0, 1], clean first."""
    whole = Whole(extractor, head.float()).eval().requires_grad_(False)
    x = images.pixels().reshape(images.x.shape)
    y = torch.from_numpy(images.y)
    radii = (0.0, *radii)
    found = apgd(whole, x, y, radii, box=(0.0, 1.0), starts=("gradient",), steps=20, batch=25)
    return found.robust_accuracy.numpy()


def half_way(features: Features, x: Tensor, y: Tensor) -> float:
    """Half the median distance of a point to the nearest training point of another class."""
    far = torch.cdist(x.double(), features.x.double())
    far[y[:, None] == features.y] = torch.inf
    return float(far.amin(1).median()) / 2


def drawn(heads: list[Head], title: str) -> Figure:
    """Robust accuracy over the radius, a band from certified to attacked for each head."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    grid = np.linspace(0, 1.02 * max(np.quantile(head.upper, 0.97) for head in heads), 400)
    for head in heads:
        low, high = ((r[:, None] > grid).mean(0) for r in (head.lower, head.upper))
        colour = COLOURS[head.name]
        axes.fill_between(grid, low, high, color=colour, alpha=0.2, lw=0)
        axes.plot(grid, high, color=colour, lw=1.5, label=head.name)
    axes.set_title(title, fontsize=10)
    axes.set(xlabel="l2 radius in feature space", ylabel="robust accuracy")
    axes.set(xlim=(0, grid[-1]), ylim=(0, 1.02))
    axes.legend(fontsize=8, title="line: attacked, band: down to certified", title_fontsize=8)
    return figure


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--dataset", default="cifar10", help="cifar10, mnist, fashion-mnist or digits")
    add("--extractor", help="efficientnet-lite0; for digits: pixels")
    add("--size", type=int, help="side of the images that the extractor gets (128; pixels: as is)")
    add("--train", type=int, default=2500, help="training images")
    add("--test", type=int, default=1000, help="test images")
    add("--points", type=int, default=100, help="test images whose radius is bounded")
    add("--attacked", type=int, default=50, help="test images attacked end to end")
    add("--radii", type=float, nargs="+", default=[0.05, 0.1, 0.2], help="of that attack")
    add("--seed", type=int, default=0)
    add("--out", type=Path, default=Path("robust-head.png"))
    asked = parser.parse_args(given)
    if asked.extractor is None:
        asked.extractor = "pixels" if asked.dataset == "digits" else "efficientnet-lite0"
    if asked.size is None and asked.extractor != "pixels":
        asked.size = 128
    return asked


def main(given: Sequence[str] | None = None) -> list[Head]:
    """Load, extract, fit, measure, draw."""
    asked = arguments(given)
    parts = {"train": asked.train, "test": asked.test}
    images = {
        part: chosen(load_images(asked.dataset, part), n, asked.seed) for part, n in parts.items()
    }
    extractor = named_extractor(asked.extractor, asked.size)
    keep = asked.extractor != "pixels"  # in the user's cache
    train, test = (features_of(images[part], extractor, cache=keep) for part in parts)
    x, y = test.x[: asked.points], test.y[: asked.points]
    few = chosen(images["test"], asked.attacked, asked.seed)
    counts = f"{len(train.y)} training, {len(test.y)} test images, seed {asked.seed}"
    title = f"{asked.dataset} by {asked.extractor}, {counts}"
    far = half_way(train, x, y)
    print(f"{title}\n{train.x.shape[1]} features; half-way to another class: {far:.3g}")
    print(f"{'':30}{'':9}  l2 radius, {len(x)} points  l2 in pixels, {len(few)} images")
    columns = f"{'head':30}{'accuracy':>9}{'certified':>10}{'attacked':>10}  {'clean':>8}"
    print(columns + "".join(f"{radius:8g}" for radius in asked.radii))
    heads = []
    for name, model in models(train.x, asked.seed).items():
        model.fit(train.x.numpy(), train.y.numpy())
        head = Head(
            name,
            float(model.score(test.x.numpy(), test.y.numpy())),
            *radii_of(model, x, y),
            end_to_end(extractor, module_of(model), few, asked.radii),
        )
        heads.append(head)
        print(head.row, flush=True)
    drawn(heads, title).savefig(asked.out, dpi=150)
    return heads


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    started = time.perf_counter()
    try:
        main()
    except TacitError as error:
        sys.exit(str(error))
    print(f"{time.perf_counter() - started:.0f} s")
