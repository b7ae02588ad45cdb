"""What the figures of Section 8 draw alike: attackers by their names, many small images as one picture."""

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from tacit.papers.allenzhu2020.deep.settings import Trained

Images = npt.NDArray[Any]

NAMES = {
    "linf4": r"$\ell_\infty$(4/255)",
    "linf8": r"$\ell_\infty$(8/255)",
    "l2half": r"$\ell_2$(0.5, 0.12)",
    "l2one": r"$\ell_2$(1, 0.25)",
}


def setting_of(config: Trained) -> str:
    """What a figure is of, as its title says it."""
    return f"{config.net}, width {config.width}, {images_told(config)}"


def images_told(config: Trained) -> str:
    """The images of it."""
    images = {"cifar10": "CIFAR-10", "digits": "digits"}[config.dataset]
    size = f", {config.side} x {config.side} pixels" if config.side else ""
    some = f", {config.train:,} training images" if config.train else ""
    return f"{images}{size}{some}"


def stretched(images: Images, rest: float) -> Images:
    """Each image (n, C, H, W) about `rest`, its largest distance from there made 1/2: mid-grey stays mid-grey."""
    away = images - rest
    most = np.abs(away).max((1, 2, 3), keepdims=True)
    found: Images = 0.5 + away / np.where(most > 0, 2 * most, 1)
    return found


def mosaic(images: Images, columns: int) -> Images:
    """Images (n, C, H, W) in [0, 1], row by row, with white lines between them, as (height, width, 3)."""
    n, c, h, w = images.shape
    rows = -(-n // columns)
    sheet = np.ones((rows * (h + 1) - 1, columns * (w + 1) - 1, 3))
    for k, image in enumerate(images):
        top, left = (k // columns) * (h + 1), (k % columns) * (w + 1)
        pixels = image.transpose(1, 2, 0)
        sheet[top : top + h, left : left + w] = pixels if c == 3 else pixels.repeat(3, 2)
    return sheet.clip(0, 1)


def show(axes: Axes, sheet: Images, title: str = "", label: str = "") -> None:
    """A picture without ticks or frame."""
    axes.imshow(sheet, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    if title:
        axes.set_title(title, fontsize="medium")
    if label:
        axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize="medium")
