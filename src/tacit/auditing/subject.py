"""The model of an audit: found by what the user wrote, checked on a few points, and put on its device."""

import importlib
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from tacit.attack.losses import margin
from tacit.attack.target import ModelError, failure, loss_and_gradient, one_line, target_of
from tacit.base.shapes import Inputs, Labels, Rows
from tacit.errors import CallError, RunError, TacitError
from tacit.nets import TensorNet, load_net
from tacit.nets.kinds import first_tensor, kind_of

SPEC = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
SCRIPT = re.compile(r"(?P<path>.*?(?P<module>[^/\\]+))\.py(:(?P<name>.+))?")
FEW = 8  # points that a model is tried on


@dataclass(frozen=True)
class Subject:
    """A model on its device: inputs of `shape` and `dtype`, 1 output or as many as there are classes."""

    model: Any
    shape: tuple[int, ...]
    outputs: int
    dtype: torch.dtype
    device: str

    def scores(self, x: Inputs) -> Inputs:
        """(n,) or (n, C), checked to be finite."""
        scores = target_of(self.model, self.shape).scores(x.flatten(1))
        if not torch.isfinite(scores).all():
            bad = (~torch.isfinite(scores)).reshape(len(x), -1).any(1).nonzero().flatten()
            raise ModelError(
                f"the model's output holds NaN or inf, first at point {int(bad[0])} of its batch: "
                "no margin can be read off it"
            )
        return scores

    def gradient(self, x: Inputs, y: Labels) -> Rows:
        """The gradient of the margin; a call error where the model has none."""
        return loss_and_gradient(target_of(self.model, self.shape), x.flatten(1), y, margin)[2]


def load_model(text: str) -> Any:
    """The model that MODEL names: a .safetensors net, or module:callable, importable from here.

    What stands there may be a torch module, one of tacit's nets, or a function or class that makes one.
    """
    path = Path(text)
    if (script := SCRIPT.fullmatch(text)) is not None:
        name = script["name"] or "NAME"
        here = (
            ""
            if script["path"] in (script["module"], f"./{script['module']}")
            else " in its folder"
        )
        raise CallError(
            f"{text} is Python code: write {script['module']}:{name}{here}, where {name} makes the model"
        )
    if path.is_dir():
        raise CallError(f"{text} is a directory: MODEL is a .safetensors file or module:callable")
    if path.is_file():
        if _holds_arrays(path):
            raise CallError(f"{text} is data (.npz): MODEL comes first, then DATA")
        try:
            return load_net(path)
        except RunError as error:
            raise CallError(str(error)) from None
    if not SPEC.fullmatch(text):
        raise CallError(
            f"there is no model {text!r}: MODEL is a .safetensors file or module:callable, "
            "as in mymodels:make_net"
        )
    module, _, name = text.partition(":")
    # what the user's code prints must not get into a JSON document
    with importable_here(), redirect_stdout(sys.stderr):
        found = _told(lambda: importlib.import_module(module), f"importing {module}")
        for part in name.split("."):
            if not hasattr(found, part):
                raise CallError(f"{module} has no {name!r}: MODEL is module:callable")
            found = getattr(found, part)
        if kind_of(found) is not None:
            return found
        if not callable(found):
            raise CallError(
                f"{text} is {type(found).__name__}: it must be a torch module or make one"
            )
        made = _told(found, f"calling {text}()")
    if kind_of(made) is None:
        raise CallError(
            f"{text}() returned {type(made).__name__}: it must return a torch module or a net of a kind "
            "that is registered"
        )
    return made


def subject_of(model: Any, x: Inputs, device: str, *, gradient: bool) -> Subject:
    """The model as an audit sees it, tried on points x of the host.

    With `gradient=False` nothing is differentiated: the model may be any callable on tensors.
    """
    if not callable(model):
        raise CallError(
            f"the model is {type(model).__name__}: give a torch module or one of tacit's nets"
        )
    kind = kind_of(model)
    if kind is not None and kind.audited is not None:
        model = kind.audited(model)
    rows = isinstance(model, TensorNet)
    if rows and model.ensemble:
        raise CallError(
            f"the net has ensemble dimensions {model.ensemble}: audit its members one by one"
        )
    if rows and model.inputs not in (None, x[0].numel()):
        raise CallError(f"the net takes {model.inputs} features, x has {x[0].numel()}")
    dtype = _dtype(model, x.dtype)
    if dtype.itemsize < 4:
        raise CallError(
            f"the model computes in {dtype}, too coarse for margins and lengths: call model.float() first, which "
            "keeps its weights"
        )
    most = float(x.abs().max())
    if most > torch.finfo(dtype).max:
        raise CallError(
            f"x reaches {most:.3g}, beyond {dtype}, the model's type: scale x, or call model.double()"
        )
    few = x[:FEW].to(device, dtype)
    if rows:
        few = few.flatten(1)
    model = model if kind is None else model.to(device)
    subject = Subject(model, tuple(few.shape[1:]), 1, dtype, device)
    try:
        scores = subject.scores(few)
        if _mixes(subject, few, scores):
            raise CallError(
                "the model mixes the points of a batch: its output at a point changes with the points next to it "
                "(a mean over dimension 0?), so no point has a radius of its own; let it treat each row alone"
            )
        subject = replace(subject, outputs=1 if scores.dim() == 1 else scores.shape[1])
        if gradient:
            subject.gradient(few, torch.ones(len(few), dtype=torch.long, device=device))
    except TacitError:
        raise
    except Exception as error:  # of tacit's own nets: others are caught where they are called
        raise failure(error, subject.shape) from error
    return subject


def _mixes(subject: Subject, few: Inputs, scores: Inputs) -> bool:
    """Whether the first point's scores change when the points next to it do; not asked of a random model.

    Both batches have one size, so that the first row is rounded alike in both.
    """
    other = subject.scores(few[:1].expand_as(few))
    near = 1e-5 * scores.abs().max()
    again = subject.scores(few)
    return bool((scores - again).abs().max() <= near < (scores[0] - other[0]).abs().max())


def _holds_arrays(path: Path) -> bool:
    """Whether the file is a zip of .npy arrays; only the names are read."""
    try:
        with zipfile.ZipFile(path) as file:
            names = file.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
    return bool(names) and all(name.endswith(".npy") for name in names)


def _dtype(model: Any, given: torch.dtype) -> torch.dtype:
    """The type of the model's numbers, or the points' own where it has none."""
    first = first_tensor(model)
    if first is not None:
        return first.dtype
    return given if given.itemsize >= 4 else torch.float32


@contextmanager
def importable_here() -> Iterator[None]:
    """The current directory is on the path, as with `python -m`."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        with suppress(ValueError):  # the user's code may have changed the path
            sys.path.remove(here)


def _told(do: Callable[[], Any], doing: str) -> Any:
    """What the user's code gives; whatever it raises becomes one line."""
    try:
        return do()
    except (Exception, SystemExit) as error:
        raise CallError(f"{doing} failed: {one_line(error)}") from error
