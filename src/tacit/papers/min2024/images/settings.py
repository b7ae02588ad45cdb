"""Settings shared by exhibits (without torch)."""

from dataclasses import dataclass
from typing import Literal

from tacit.errors import CallError
from tacit.papers._shared.checks import check_at_least, check_positive, check_unique

Dataset = Literal["digits", "mnist", "fashion-mnist", "cifar10"]


Layer = Literal["released", "written", "raw"]


@dataclass(frozen=True)
class ImageNets:
    """A net of `width` neurons for each p and repeat, trained by Adam on cross-entropy (Section 5.2.1).

    `classes`: labels are taken modulo this, as in the released code: 2 is parity, 10 the digits. `layer`: as
    *released* (divided by ||x - mean||^(p-1), points in pixel space), as *written* (x - mean scaled to length 1
    first) or *raw* (x - mean as it is: footnote 4). `epochs` is 51 in the released configs, 50 in the text.
    `points` test points are attacked by `steps` steps of APGD; all of them give the clean accuracy.
    """

    dataset: Dataset = "mnist"
    classes: int = 10
    p: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    width: int = 500
    epochs: int = 51
    batch: int = 1000
    step: float = 1e-3
    layer: Layer = "released"
    points: int = 500
    steps: int = 100
    repeats: int = 1

    def __post_init__(self) -> None:
        for p in self.p:
            if not p >= 1:
                raise CallError(f"p={p:g}: PolyReLU needs p >= 1 (p = 1 is ReLU)")
        check_unique("p", self.p)
        check_at_least("classes", (self.classes,), 2, "one class needs no classifier")
        for name in ("width", "epochs", "batch", "step", "points", "steps", "repeats"):
            check_positive(name, (getattr(self, name),))


# digits have 1,198 training points of 64 pixels
SMOKE = {"dataset": "digits", "width": 50, "epochs": 3, "batch": 300, "points": 30, "steps": 5}


PAPER = {"points": 10_000, "repeats": 10}


RELEASED = {
    "width": 500, "epochs": 51, "batch": 1000, "step": 1e-3, "layer": "released", "steps": 100, "restarts_l1": 5
}  # fmt: skip


def departures(config: object, **changed: object) -> dict[str, object]:
    """The released value of each setting in which nets or attack are others; 50 epochs, the text's, are none.

    The numbers of points and seeds are none, either: they are what intervals tell.
    """
    released = {**RELEASED, **changed}
    own = {name: getattr(config, name, value) for name, value in released.items()}
    own["epochs"] = 51 if own["epochs"] == 50 else own["epochs"]
    return {name: value for name, value in released.items() if own[name] != value}


def regime_within(config: object, papers: str, **changed: object) -> str:
    """`regime` of a claim on the paper's own data, which are `papers`: inside, shortened or outside."""
    off = departures(config, **changed)
    if not off:
        return f"inside: {papers}, the released settings"
    fewer = all(
        name in ("epochs", "steps", "width", "restarts_l1") and getattr(config, name) < value
        for name, value in off.items()
    )
    said = ", ".join(f"{name} = {getattr(config, name)} ({value})" for name, value in off.items())
    return f"{'shortened' if fewer else 'outside'}: {said}; in brackets as released"


def regime_of(config: ImageNets, *, classes: int) -> str:
    """`regime` of the claims of a figure or table on MNIST in so many classes."""
    if config.dataset != "mnist":
        return f"other data: {config.dataset} where the paper has MNIST"
    return regime_within(config, "MNIST", classes=classes)
