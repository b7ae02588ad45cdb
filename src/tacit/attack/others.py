"""Attacks of other tools behind one signature, so that they can be put next to ours.

Each takes a model with logits, points, class labels, a radius, the norm (2 or inf) and the range of the data, and
returns the attacked points as the tool returns them: nothing is repaired, so that what leaves the ball can be
counted. A tool is imported when it is called; `installed` says whether it can be. All are judged by our rule.
"""

import contextlib
import io
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import torch
from torch import Tensor

from tacit.attack.losses import Scores, margin
from tacit.attack.norms import known_norm
from tacit.base.shapes import Labels, Which

Bounds = tuple[float, float]
Call = Callable[[torch.nn.Module, Tensor, Tensor, float, Bounds | None, float], Tensor]

OUTSIDE = 1.001  # a perturbation longer than this many radii has left the ball
HAIR = 1e-6  # outside the box


@dataclass(frozen=True)
class Other:
    """An attack, the package that it is in, and the norms that it knows."""

    package: str
    call: Call
    norms: tuple[float, ...] = (2, math.inf)

    def __call__(
        self,
        model: torch.nn.Module,
        x: Tensor,
        y: Tensor,
        radius: float,
        bounds: Bounds | None,
        norm: float = 2,
    ) -> Tensor:
        """The attacked points."""
        return self.call(model, x, y, radius, bounds, norm)


def installed(package: str) -> str | None:
    """The version of a package that is there, else None; nothing is imported."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


class Logits(torch.nn.Module):
    """Scores of rows as a module; of a one-output model the logits (-f, f) / 2 of the classes 0 and 1."""

    def __init__(self, f: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.f = f

    def forward(self, x: Tensor) -> Tensor:
        """(n, C)."""
        score = self.f(x.flatten(1))
        return score if score.dim() == 2 else torch.stack([-score, score], 1) / 2


def judged(
    scores: Callable[[Tensor], Scores], x: Tensor, y: Labels, attacked: Tensor, radius: float,
    bounds: Bounds | None, norm: float = 2,
) -> tuple[Which, Which]:  # fmt: skip
    """Broken (a margin of at most 0, clean or at a place inside ball and box), and what has left ball or box."""
    outside = known_norm(norm).size((attacked - x).flatten(1)) > OUTSIDE * radius
    if bounds is not None:
        low, high = bounds
        outside |= ((attacked < low - HAIR) | (attacked > high + HAIR)).flatten(1).any(1)
    with torch.no_grad():
        clean, after = margin(scores(x), y), margin(scores(attacked), y)
    return (clean <= 0) | ((after <= 0) & ~outside), outside


def foolbox_attack(names: dict[float, str], **options: object) -> Other:
    """foolbox, by the norm: bounds are compulsory, so data without a box get their own range."""

    def attack(
        model: torch.nn.Module, x: Tensor, y: Tensor, radius: float, bounds: Bounds | None,
        norm: float,
    ) -> Tensor:  # fmt: skip
        import foolbox
        from foolbox.models.pytorch import PyTorchModel

        bounds = bounds or (float(x.min()) - radius, float(x.max()) + radius)
        wrapped = PyTorchModel(model.eval(), bounds=bounds, device="cpu")
        chosen = getattr(foolbox.attacks, names[norm])(**options)
        return chosen(wrapped, x, y, epsilons=radius)[1]

    return Other("foolbox", attack, tuple(names))


def art_attack(name: str, **options: object) -> Other:
    """The Adversarial Robustness Toolbox: steps of a tenth of the radius, no clip values without a box."""

    def attack(
        model: torch.nn.Module, x: Tensor, y: Tensor, radius: float, bounds: Bounds | None,
        norm: float,
    ) -> Tensor:  # fmt: skip
        from art.attacks import evasion
        from art.estimators.classification import PyTorchClassifier

        classes = model(x[:1]).shape[1]
        wrapped = PyTorchClassifier(
            model.eval(),
            torch.nn.CrossEntropyLoss(),
            tuple(x.shape[1:]),
            classes,
            clip_values=bounds,
            device_type="cpu",
        )
        chosen = getattr(evasion, name)(
            wrapped, norm=norm, eps=radius, eps_step=radius / 10, batch_size=len(x), verbose=False,
            **options,
        )  # fmt: skip
        return torch.from_numpy(chosen.generate(x.numpy(), y.numpy()))

    return Other("adversarial-robustness-toolbox", attack)


def autoattack(
    model: torch.nn.Module, x: Tensor, y: Tensor, radius: float, _bounds: Bounds | None, norm: float
) -> Tensor:
    """AutoAttack on square images: standard; apgd-t needs 4 classes, with fewer apgd-ce and square are left."""
    from pyautoattack import AutoAttack

    few = model(x[:1]).shape[1] < 4
    side = round(x[0].numel() ** 0.5)
    chosen = AutoAttack(
        torch.nn.Sequential(torch.nn.Flatten(), model).eval(),
        norm="L2" if norm == 2 else "Linf",
        eps=radius,
        seed=0,
        version="custom" if few else "standard",
        attacks=["apgd-ce", "square"] if few else None,
    )
    found = chosen.run_standard_evaluation(x.reshape(-1, 1, side, side), y, batch_size=len(x))
    return (found[0] if isinstance(found, tuple) else found).reshape(x.shape)


PGD_NAMES = {
    2: "L2ProjectedGradientDescentAttack",
    math.inf: "LinfProjectedGradientDescentAttack",
}
OTHERS: dict[str, Other] = {
    "foolbox PGD-50": foolbox_attack(PGD_NAMES, steps=50),
    "foolbox DDN-100": foolbox_attack({2: "DDNAttack"}, steps=100),
    "foolbox FMN-100": foolbox_attack({2: "L2FMNAttack", math.inf: "LInfFMNAttack"}, steps=100),
    "ART PGD-100": art_attack("ProjectedGradientDescentPyTorch", max_iter=100),
    "ART AutoPGD-CE": art_attack(
        "AutoProjectedGradientDescent", max_iter=100, nb_random_init=1, loss_type="cross_entropy"
    ),
    "AutoAttack": Other("pyautoattack", autoattack),
}


@contextlib.contextmanager
def aside(seed: int = 0) -> Iterator[None]:
    """Other tools print, log and warn, and take their random numbers from the global generators."""
    logging.disable(logging.WARNING)
    nowhere, state = io.StringIO(), np.random.get_state()
    with (
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
        warnings.catch_warnings(),
        torch.random.fork_rng(),
    ):
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)
        yield
    np.random.set_state(state)
    logging.disable(logging.NOTSET)
