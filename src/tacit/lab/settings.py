"""Settings of a config: `--set key=value` on the command line, keywords in Python.

A config is a frozen dataclass whose fields are int, float, bool, str, Literal, `X | None`, or a
tuple of one of these; a value is read by the type of its field. What values mean together (K1 <= K)
is the config's own `__post_init__`. A float must be finite unless its field says
`field(metadata={"finite": False})`.
"""

import dataclasses
import difflib
import math
import types
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from tacit.errors import CallError

C = TypeVar("C")


def parse_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """The `key=value` pairs of a command line, each key once."""
    texts: dict[str, str] = {}
    for assignment in assignments:
        key, equals, text = (piece.strip() for piece in assignment.partition("="))
        if not equals or not key:
            raise CallError(f"--set takes key=value, as in --set K=4; got {assignment!r}")
        if key in texts:
            raise CallError(f"--set {key} is given twice: {texts[key]!r} and {text!r}")
        texts[key] = text
    return texts


def with_settings(config: C, given: Mapping[str, Any], prefix: str = "") -> C:
    """The config with the given values, typed by a user or passed from Python, in place of its own.

    `prefix` is what the user writes before `key=value`, for the examples in the messages.
    """
    fields = {field.name: field for field in dataclasses.fields(config)}  # type: ignore[arg-type]
    for key in given:
        if key not in fields:
            raise CallError(_unknown(key, list(fields)))
    hints = get_type_hints(type(config))
    values = {}
    for key, raw in given.items():
        try:
            values[key] = _read(hints[key], raw)
            if fields[key].metadata.get("finite", True):
                _check_finite(values[key])
        except (TypeError, ValueError, OverflowError) as error:
            example = f"{prefix}{key}={as_text(getattr(config, key))}"
            wanted = str(error) if isinstance(error, _NotFiniteError) else _wanted(hints[key])
            raise CallError(f"{key} takes {wanted}, as in {example}; got {raw!r}") from None
    return dataclasses.replace(config, **values)  # type: ignore[type-var]


def as_text(value: Any) -> str:
    """A field's value as a user types it; reading it gives the value back."""
    if isinstance(value, tuple):
        return ",".join(as_text(item) for item in value)
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _unknown(key: str, names: list[str]) -> str:
    # without case: k for K is the commonest slip
    near = difflib.get_close_matches(key.lower(), [name.lower() for name in names])
    meant = [name for name in names if name.lower() in near]
    hint = f"near: {', '.join(meant)}; " if meant else ""
    return f"there is no setting {key!r}; {hint}settings: {', '.join(names)}"


def _read(hint: Any, raw: Any) -> Any:
    """The value of type `hint` that `raw` (text or Python value) stands for, or ValueError."""
    for option in _options(hint):
        try:
            return _read_one(option, raw.strip() if isinstance(raw, str) else raw)
        except (TypeError, ValueError, OverflowError):
            continue
    raise ValueError(raw)


def _read_one(hint: Any, raw: Any) -> Any:
    if get_origin(hint) is tuple:
        pieces = raw.split(",") if isinstance(raw, str) else raw
        items = tuple(pieces) if isinstance(pieces, Iterable) else (pieces,)
        return tuple(_read(get_args(hint)[0], item) for item in items) or _refuse(raw)
    if get_origin(hint) is Literal:
        return _chosen({str(choice): choice for choice in get_args(hint)}, raw)
    return _kind(hint).read(raw)


def _whole(raw: Any) -> int:
    number = _real(raw)  # 1e5 is how people write a sample size
    if number != int(number):
        _refuse(raw)
    digits = isinstance(raw, Integral) or (isinstance(raw, str) and raw.lstrip("+-").isdecimal())
    return int(raw) if digits else int(number)  # digits as they are: a float has 53 bits


def _real(raw: Any) -> float:
    is_number = isinstance(raw, (str, Real)) and not isinstance(raw, bool)
    return float(raw) if is_number else _refuse(raw)


def _chosen(choices: Mapping[str, Any], raw: Any) -> Any:
    text = as_text(raw)
    return choices[text] if text in choices else _refuse(raw)


def _switch(raw: Any) -> bool:
    switch = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    return bool(_chosen(switch, raw.lower() if isinstance(raw, str) else raw))


def _word(raw: Any) -> str:
    return raw if isinstance(raw, str) and raw else _refuse(raw)


def _nothing(raw: Any) -> None:
    if raw is not None and raw != "none":
        _refuse(raw)


def _refuse(raw: Any) -> Any:
    raise ValueError(raw)


@dataclasses.dataclass(frozen=True)
class _Kind:
    """How a plain type is read, and what one and several of its values are called."""

    read: Callable[[Any], Any]
    one: str
    many: str


_KINDS = {
    int: _Kind(_whole, "a whole number", "whole numbers"),
    float: _Kind(_real, "a number", "numbers"),
    bool: _Kind(_switch, "true or false", "true or false, each"),
    str: _Kind(_word, "a word", "words"),
    types.NoneType: _Kind(_nothing, "none", "none"),
}


def _kind(hint: Any) -> _Kind:
    if hint not in _KINDS:
        raise CallError(f"a setting of type {hint} cannot be given: it has no form as text")
    return _KINDS[hint]


class _NotFiniteError(ValueError):
    """The value has the right type and is nan or inf; its message is what is wanted."""


def _check_finite(value: Any) -> None:
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, float) and not math.isfinite(item):
            raise _NotFiniteError(
                "finite numbers" if isinstance(value, tuple) else "a finite number"
            )


def _options(hint: Any) -> tuple[Any, ...]:
    """The members of a union; any other type is its own only option."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _wanted(hint: Any, *, many: bool = False) -> str:
    names = []
    for option in _options(hint):
        if get_origin(option) is tuple:
            names.append(_wanted(get_args(option)[0], many=True))
        elif get_origin(option) is Literal:
            names += [str(choice) for choice in get_args(option)]
        else:
            names.append(_kind(option).many if many else _kind(option).one)
    return " or ".join(names)
