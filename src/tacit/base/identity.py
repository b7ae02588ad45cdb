"""A hash of what a callable computes: weights, code, settings, and the functions and values that it uses.

A cache that is keyed by less than this would give a net's old features after its code or a constant in
its transform was changed. Code of installed libraries counts by name and version, tacit's and that of packages
that are worked on by the definitions it rests on (`sources`). An object may say itself what counts of it, by a
method `identity` that returns those things.
"""

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tacit.base.sources import Reference, code_digest, followed, inner_facts, packaged

PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    range,
    slice,
    type(...),
    torch.dtype,
    torch.device,
)


@dataclass(frozen=True)
class Code:
    """Definitions that a value rests on, and attributes that it asks for besides: they count by their text."""

    starts: tuple[Reference, ...]
    asked: frozenset[str] = frozenset()

    @property
    def digest(self) -> str:
        """The digest of all that is reached from here, as the files are now."""
        return code_digest(*self.starts, asked=self.asked)


class UnidentifiedError(Exception):
    """Something that cannot be hashed, such as an open file."""


def identity_of(*things: object) -> str:
    """The sha256 of what the things compute, in hexadecimal; empty where one of them cannot be hashed."""
    return identity_and_code(*things)[0]


def identity_and_code(*things: object) -> tuple[str, Code]:
    """`identity_of` the things, and the code that they rest on, which can be asked again without them."""
    hasher = hashlib.sha256()
    seen: dict[int, tuple[int, Any]] = {}
    try:
        _feed(hasher.update, things, seen)
    # OSError: tacit's source is not here; ValueError: a closure over what is not bound yet
    except (UnidentifiedError, RecursionError, OSError, ValueError):
        return "", Code(())
    found = [value for _, value in seen.values() if isinstance(value, Code)]
    starts = sorted({start for code in found for start in code.starts})
    return hasher.hexdigest(), Code(
        tuple(starts), frozenset().union(*(code.asked for code in found))
    )


def _feed(put: Callable[[bytes], None], value: Any, seen: dict[int, tuple[int, Any]]) -> None:
    """Write the value, and what it is made of, depth first; what was written before by its number.

    `seen` holds the objects too, so that no other takes over the address of one that is gone.
    """
    kind = type(value)
    if isinstance(value, np.ndarray) and value.dtype == object:  # texts that were read from a file
        value = [value.shape, value.tolist()]
    if isinstance(value, PLAIN):
        put(f"{kind.__name__} {value!r}\n".encode())
        return
    if isinstance(value, (Tensor, np.ndarray, np.generic)):
        _feed_array(put, value)
        return
    if isinstance(value, (bytes, bytearray)):
        put(b"bytes %d " % len(value) + value)
        return
    if id(value) in seen:
        put(f"seen {seen[id(value)][0]}\n".encode())
        return
    seen[id(value)] = (len(seen), value)
    put(f"( {kind.__module__}.{kind.__qualname__}\n".encode())
    for part in _parts(value):
        _feed(put, part, seen)
    put(b")\n")


def _feed_array(put: Callable[[bytes], None], value: Tensor | np.ndarray | np.generic) -> None:
    """Write an array: type, shape and bytes."""
    put(f"array {value.dtype} {tuple(value.shape)}\n".encode())
    if isinstance(value, Tensor):
        if value.layout is not torch.strided or value.is_quantized:
            raise UnidentifiedError(str(value.layout))
        value = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    put(value.tobytes())


def _parts(value: Any) -> Iterator[Any]:
    """What a value is made of, in an order that does not change from process to process."""
    match value:
        case Code():
            yield value.digest
        case Mapping():
            yield from _own_type(value)
            for key, item in value.items():
                yield from (key, item)
        case list() | tuple():
            yield from _own_type(value)
            yield from value
        case set() | frozenset():
            yield from sorted(value, key=repr)
        case CodeType():
            yield from (value.co_code, value.co_names, value.co_consts)
        case partial():
            yield from (value.func, value.args, value.keywords)
        case MethodType():
            yield from (value.__func__, value.__self__)
        case staticmethod() | classmethod():
            yield value.__func__
        case property():
            yield from (value.fget, value.fset)
        case ModuleType():
            yield _named(value.__name__, "")
            if followed(value.__name__):
                yield Code(((value.__name__, ""),))
        case BuiltinFunctionType():
            yield _named(str(value.__module__), value.__qualname__)
        case FunctionType():
            yield from _function_parts(inspect.unwrap(value))
            if hasattr(value, "__wrapped__") and not _installed(value.__code__.co_filename):
                yield value.__code__
                yield from (cell.cell_contents for cell in value.__closure__ or ())
        case type():
            yield from _class_parts(value)
        case torch.Generator():
            yield value.get_state()
        case _ if _says_itself(value):
            yield from (type(value).__qualname__, value.identity())
        case _ if type(value).__module__.startswith("xarray."):
            yield value.to_dict(data="array")
        case _ if hasattr(value, "__dict__"):
            yield type(value)
            # a module is put into eval mode before it is used
            yield {key: item for key, item in vars(value).items() if key != "training"}
        case _:
            raise UnidentifiedError(type(value).__qualname__)


def _function_parts(function: Any) -> Iterator[Any]:
    """A library's function by name; the user's by code, defaults, closure and the globals it names."""
    module = str(function.__module__ or "")  # None for what exec defines
    if not isinstance(function, FunctionType) or _of_library(module):
        yield _named(module, function.__qualname__)
        return
    yield from (function.__defaults__, function.__kwdefaults__)
    for cell in function.__closure__ or ():
        yield cell.cell_contents
    code, outermost = function.__code__, function.__qualname__.partition(".")[0]
    if packaged(module) and "<locals>" in function.__qualname__:
        # a lambda in `run` rests on what it names itself, and not on the claims that `run` makes as well
        texts, named, asked = inner_facts(module, code.co_firstlineno)
        # a text is the same with and without the checks of annotations; lambdas of one line differ by their code
        yield code if function.__name__ == "<lambda>" else texts
        yield Code(tuple(sorted(named)), frozenset(asked))
        return
    if packaged(module):
        yield Code(((module, outermost),))
        return
    yield code
    known = function.__globals__
    yield {name: known[name] for name in sorted(_names(code)) if name in known}


def _says_itself(value: Any) -> bool:
    """Whether an object's class has a method `identity`; a torch module may have one for purposes of its own."""
    method = inspect.getattr_static(type(value), "identity", None)
    return isinstance(method, FunctionType) and not isinstance(value, torch.nn.Module)


def _own_type(value: Any) -> Iterator[type]:
    """The class of a list, tuple or mapping that is not Python's own: its methods count."""
    if type(value).__module__ != "builtins":
        yield type(value)


def _installed(path: str) -> bool:
    return "site-packages" in path or "dist-packages" in path


def _names(code: CodeType) -> set[str]:
    """The names that a function and those defined inside it look up."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*(_names(const) for const in inner))


def _class_parts(cls: type) -> Iterator[Any]:
    """A library's class by name; the user's by its methods and values, and those of its bases."""
    for base in cls.__mro__:
        yield _named(base.__module__, base.__qualname__)
        if _of_library(base.__module__):
            continue
        if packaged(base.__module__) and "<locals>" not in base.__qualname__:
            yield Code(((base.__module__, base.__qualname__.partition(".")[0]),))
            continue
        for name, item in sorted(vars(base).items()):
            method = isinstance(item, (FunctionType, staticmethod, classmethod, property))
            if method or not (name.startswith("__") or name == "_abc_impl"):
                yield from (name, item)


def _named(module: str, qualname: str) -> str:
    """Where a thing is, and of a library the version; what is worked on counts by its code and not by this."""
    root = module.partition(".")[0]
    version = "" if followed(module) else getattr(sys.modules.get(root), "__version__", "")
    return f"{module}:{qualname} {version}"


def _of_library(module: str) -> bool:
    """Whether the module is Python's or an installed package, not tacit's or the user's own."""
    root = module.partition(".")[0]
    if followed(module):
        return False
    if root in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file
