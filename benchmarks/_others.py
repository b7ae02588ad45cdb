"""Attacks of other tools behind one signature, so that they can be put next to ours.

Each takes a model with logits, points, class labels, a radius in l2 and the range of the data, and returns the
attacked points as the tool returns them: nothing is repaired, so that what leaves the ball can be counted.
"""

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

Bounds = tuple[float, float]
Other = Callable[[torch.nn.Module, Tensor, Tensor, float, Bounds | None], Tensor]


class TwoLogits(torch.nn.Module):
    """A one-output model as other tools want it: the logits (-f, f) / 2 of the classes 0 and 1."""

    def __init__(self, f: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.f = f

    def forward(self, x: Tensor) -> Tensor:
        score = self.f(x.flatten(1))
        return torch.stack([-score, score], 1) / 2


def foolbox_attack(name: str, **options: object) -> Other:
    """foolbox: bounds are compulsory, so data without a box get their own range."""

    def attack(
        model: torch.nn.Module, x: Tensor, y: Tensor, radius: float, bounds: Bounds | None
    ) -> Tensor:
        import foolbox

        bounds = bounds or (float(x.min()) - radius, float(x.max()) + radius)
        wrapped = foolbox.PyTorchModel(model.eval(), bounds=bounds, device="cpu")
        chosen = getattr(foolbox.attacks, name)(**options)
        return chosen(wrapped, x, y, epsilons=radius)[1]

    return attack


def art_attack(name: str, **options: object) -> Other:
    """The Adversarial Robustness Toolbox, without clip values where the data have no box."""

    def attack(
        model: torch.nn.Module, x: Tensor, y: Tensor, radius: float, bounds: Bounds | None
    ) -> Tensor:
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
            wrapped, norm=2, eps=radius, batch_size=len(x), verbose=False, **options
        )
        return torch.from_numpy(chosen.generate(x.numpy(), y.numpy()))

    return attack


def autoattack(
    model: torch.nn.Module, x: Tensor, y: Tensor, radius: float, _bounds: Bounds | None
) -> Tensor:
    """AutoAttack on square images: standard; apgd-t needs 4 classes, with fewer apgd-ce and square are left."""
    from pyautoattack import AutoAttack

    few = model(x[:1]).shape[1] < 4
    side = round(x[0].numel() ** 0.5)
    chosen = AutoAttack(
        torch.nn.Sequential(torch.nn.Flatten(), model).eval(),
        norm="L2",
        eps=radius,
        seed=0,
        version="custom" if few else "standard",
        attacks=["apgd-ce", "square"] if few else None,
    )
    found = chosen.run_standard_evaluation(x.reshape(-1, 1, side, side), y, batch_size=len(x))
    return (found[0] if isinstance(found, tuple) else found).reshape(x.shape)


OTHERS: dict[str, Other] = {
    "foolbox L2PGD-50": foolbox_attack("L2ProjectedGradientDescentAttack", steps=50),
    "foolbox DDN-100": foolbox_attack("DDNAttack", steps=100),
    "foolbox FMN-100": foolbox_attack("L2FMNAttack", steps=100),
    "ART PGD-100": art_attack("ProjectedGradientDescentPyTorch", max_iter=100),
    "ART AutoPGD-CE": art_attack(
        "AutoProjectedGradientDescent", max_iter=100, nb_random_init=1, loss_type="cross_entropy"
    ),
    "AutoAttack": autoattack,
}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Other tools print, log and warn."""
    logging.disable(logging.WARNING)
    nowhere = io.StringIO()
    with (
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)
