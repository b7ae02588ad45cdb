"""Nets by recipe: read where they are kept, else trained and kept.

A file names its address and a digest of all it holds: one that is damaged, or is another's, is told of and made
again. Files are put in place whole, and what cannot be written is not kept: the run goes on. A run waits for
another that trains the same nets, and then reads them.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from filelock import FileLock, Timeout
from torch import Tensor

from tacit.base.files import read_tensors, write_json, write_tensors
from tacit.base.identity import identity_of
from tacit.errors import RunError
from tacit.lab.exhibit import Savable
from tacit.lab.models.shelf import VARIABLE, Recipe, address_of
from tacit.lab.provenance import now
from tacit.nets.saved import rebuilt

K = TypeVar("K")
Curves = dict[str, np.ndarray]
Tensors = dict[str, Tensor]

EVERY = 20.0
"""Seconds between checkpoints: what a kill can cost, against the tenth of a second that writing one takes."""


@dataclass(frozen=True)
class Made:
    """A trained net (on the CPU), and what was measured on the way, each along its first axis an epoch."""

    net: Any
    curves: Curves = field(default_factory=dict)


class Models:
    """The store in a folder; `tell` gets a line about whatever is wrong with it."""

    def __init__(self, folder: Path, tell: Callable[[str | None], None], device: str) -> None:
        self.folder, self.tell = folder, tell
        self.made_with = {"torch": torch.__version__, "numpy": np.__version__, "device": device}

    def made(
        self,
        recipes: Mapping[K, Recipe],
        train: Callable[[list[K], Checkpoint], Mapping[K, Made]],
        watched: Recipe | None = None,
    ) -> dict[K, Made]:
        """The nets of these recipes; those that are not kept are trained, and others with them if need be.

        `watched` is the recipe of the curves that are wanted too: what is measured, on which points, by which
        code. A net that was kept without them is trained again.
        """
        wanted = {key: {**recipe, **self.made_with} for key, recipe in recipes.items()}
        found = self._known(wanted, watched)
        if len(found) == len(wanted):
            return found
        with self._alone(wanted.values()):
            found = self._known(wanted, watched)  # another run may have made them meanwhile
            todo = [key for key in wanted if key not in found]
            if todo:
                begun = time.monotonic()
                checkpoint = Checkpoint(self, [address_of(wanted[key]) for key in todo], watched)
                for key, made in train(todo, checkpoint).items():
                    self._keep(wanted[key], made, watched, time.monotonic() - begun)
                    found[key] = made
                checkpoint.remove()
        return {key: found[key] for key in wanted}

    def read(self, path: Path, address: str) -> tuple[Tensors, dict[str, str]] | None:
        """Tensors and metadata of a file of this address; None where it is not there, or not whole."""
        try:
            if not stat.S_ISREG(path.lstat().st_mode):  # a pipe would never end
                self._refuse(path, "it is no file")
                return None
            tensors, meta = read_tensors(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._refuse(path, error.strerror or str(error))
            return None
        except RunError:
            self._refuse(path, "it is no whole safetensors file")
            return None
        digest = meta.pop("digest", "")
        if meta.get("address") != address:
            self._refuse(path, "it is of another recipe")
        elif digest != _digest(tensors, meta):
            self._refuse(path, "its digest does not agree")
        else:
            return tensors, meta
        return None

    def write(self, path: Path, address: str, tensors: Tensors, meta: dict[str, str]) -> bool:
        """Keep tensors and metadata, whole; False, and a line, where that cannot be."""
        held = {**meta, "address": address}
        with self._written():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_tensors(path, tensors, {**held, "digest": _digest(tensors, held)})
            return True
        return False

    def _known(self, wanted: Mapping[K, Recipe], watched: Recipe | None) -> dict[K, Made]:
        """Those that are kept, with all that is wanted of them."""
        found = {}
        for key, recipe in wanted.items():
            address = address_of(recipe)
            path = self.folder / f"{address}.safetensors"
            curves: Curves | None = {}
            if watched is not None:
                beside = self.read(self._curves(address, watched), address)
                curves = beside and {name: t.numpy() for name, t in beside[0].items()}
            if curves is None or (known := self.read(path, address)) is None:
                continue
            try:
                found[key] = Made(rebuilt(path, *known), curves)
            except RunError as error:
                self._refuse(path, str(error))
        return found

    def _keep(self, recipe: Recipe, made: Made, watched: Recipe | None, seconds: float) -> None:
        """Put a net, its curves and its record in their places."""
        address, net = address_of(recipe), made.net
        assert isinstance(net, Savable)
        tensors, meta = net.state()
        record = {"recipe": dict(recipe), "made": now(), "seconds": round(seconds, 3)}
        if watched is not None:
            curves = {name: torch.from_numpy(values) for name, values in made.curves.items()}
            self.write(self._curves(address, watched), address, curves, {})
        if self.write(self.folder / f"{address}.safetensors", address, tensors, meta):
            with self._written():
                write_json(self.folder / f"{address}.json", record)

    def _curves(self, address: str, watched: Recipe) -> Path:
        """The file of the curves of a net."""
        return self.folder / f"{address}.{address_of(watched)[:16]}.safetensors"

    @contextmanager
    def _alone(self, recipes: Any) -> Iterator[None]:
        """Hold these nets; where a lock cannot be had, two runs may do the same work, and nothing else."""
        address = address_of({"nets": [address_of(recipe) for recipe in recipes]})
        path = self.folder / f"{address}.lock"
        lock = FileLock(path)
        with self._written():
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                self.tell(f"another run trains the same nets: waiting for it ({path})")
                lock.acquire()
        try:
            yield
        finally:
            if lock.is_locked:
                with suppress(OSError):  # Windows removes no open file
                    path.unlink(missing_ok=True)
            lock.release()

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Whatever the system refuses is told once, and passed over."""
        try:
            yield
        except (RunError, OSError, NotImplementedError) as error:  # the last: a disk without locks
            cause = error.__cause__ if isinstance(error, RunError) else error
            why = getattr(cause, "strerror", None) or cause
            self.tell(
                f"trained nets cannot be kept in {self.folder} ({why}): the run goes on without; "
                f"make room there, or set {VARIABLE} to another folder"
            )

    def _refuse(self, path: Path, why: str) -> None:
        """A line about a file that cannot be used."""
        self.tell(f"{path} is not used ({why}): it is made again")


class Checkpoint:
    """The last kept epoch of a training, and the `curves` up to it: name, and a value for each look."""

    def __init__(self, models: Models, nets: list[str], watched: Recipe | None) -> None:
        self.models, self.curves = models, dict[str, list[np.ndarray]]()
        self.address = address_of({"nets": nets, "watched": watched})
        self.path = models.folder / f"{self.address}.checkpoint.safetensors"
        self.clock = time.monotonic()

    def last(self) -> tuple[int, Tensors] | None:
        """The epoch and the state after it; the curves up to there are put in place."""
        found = self.models.read(self.path, self.address)
        if found is None:
            return None
        state, meta = found
        for name in [name for name in state if name.startswith("curves/")]:
            self.curves[name.removeprefix("curves/")] = list(state.pop(name).numpy())
        return int(meta["epoch"]), state

    def offer(self, epoch: int, state: Callable[[], Tensors]) -> None:
        """Keep the state after this epoch, unless another was kept a short while ago."""
        if time.monotonic() - self.clock < EVERY:
            return
        looks = {
            f"curves/{name}": torch.from_numpy(np.stack(values))
            for name, values in self.curves.items()
        }
        self.models.write(self.path, self.address, state() | looks, {"epoch": str(epoch)})
        self.clock = time.monotonic()

    def remove(self) -> None:
        """The nets are kept: it is needed no more."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


def _digest(tensors: Tensors, meta: dict[str, str]) -> str:
    """Of all that a file holds, in whatever order."""
    return identity_of(sorted(tensors.items()), sorted(meta.items()))
