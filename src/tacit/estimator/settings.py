"""What each parameter of the classifier may be, as data: a test and the words of the refusal."""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, get_args

from tacit.errors import CallError
from tacit.train.descent.updates import Optimizer
from tacit.train.losses import LossName

SUPERVISION = ("labels", "subclasses", "discovered")
DEVICES = ("cpu", "cuda", "auto")

Rule = tuple[Callable[[Any], bool], str]


def one_of(names: tuple[str, ...]) -> Rule:
    """A name of a list."""
    return (lambda value: isinstance(value, str) and value in names), f"one of {', '.join(names)}"


def real(least: float, most: float = math.inf, *, open_at_least: bool = False) -> Rule:
    """A number from `least` (or above it) to below `most`."""

    def fits(value: Any) -> bool:
        """NaN compares as false."""
        number = isinstance(value, Real) and not isinstance(value, bool)
        return number and (value > least if open_at_least else value >= least) and value < most

    end = "" if most == math.inf else f" and < {most:g}"
    return fits, f"a finite number {'>' if open_at_least else '>='} {least:g}{end}"


def whole(least: int) -> Rule:
    """An integer."""

    def fits(value: Any) -> bool:
        """True and False are no numbers here."""
        return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least

    return fits, f"a whole number >= {least}"


def either(extra: Any, rule: Rule) -> Rule:
    """That value, or what the rule says."""
    return (lambda value: value is extra or rule[0](value)), f"{extra}, or {rule[1]}"


FLAG: Rule = (lambda value: isinstance(value, bool)), "True or False"

RULES: dict[str, Rule] = {
    "p": (real(1)[0], "a finite number >= 1 (p = 1 is ReLU)"),
    "width": whole(1),
    "loss": one_of(get_args(LossName)),
    "optimizer": one_of(get_args(Optimizer)),
    "learning_rate": real(0, open_at_least=True),
    "batch_size": whole(1),
    "max_iter": whole(1),
    "tol": real(0),
    "n_iter_no_change": whole(1),
    "early_stopping": FLAG,
    "validation_fraction": real(0, 1, open_at_least=True),
    "weight_decay": real(0),
    "normalize_input": FLAG,
    "supervision": one_of(SUPERVISION),
    "n_subclasses": either(None, whole(1)),
    "warm_start": FLAG,
    "device": one_of(DEVICES),
}


def check_parameters(parameters: dict[str, Any]) -> None:
    """Each against its rule; `random_state` is left to scikit-learn."""
    for name, (fits, words) in RULES.items():
        if not fits(parameters[name]):
            raise CallError(f"{name}={parameters[name]!r}: it is {words}")
