"""The place of a run below OUT, so ordered that a kill at any moment loses nothing finished.

    OUT/ID                       a complete run, only ever put there by a rename
    OUT/.partial/ID-ORDER/parts  finished pieces of an interrupted run
    OUT/.partial/ID-ORDER/run    the folder being assembled; its provenance.json is written last
    OUT/.partial/ID-ORDER/old    what the new run replaces, until it is in place
    OUT/.partial/ID.lock         held while a process works on ID

ORDER is a digest of config, scale, seed and device; by which code a part was made is in its name (`parts`).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.base.files import writing
from tacit.errors import RunError
from tacit.lab.order import Order
from tacit.lab.parts import of_earlier_code
from tacit.lab.record import MARK, RunRecord, foreign_files, read_provenance, read_record, seal


def prepare(out: Path) -> None:
    """Make `out` a folder that can be written to, or say at once that it cannot be one."""
    with writing(out):  # to ask whether it exists may fail too: a name can be too long
        if out.exists() and not out.is_dir():
            raise RunError(f"{out} is a file, not a folder: choose another --out")
        (out / ".partial").mkdir(parents=True, exist_ok=True)


@contextmanager
def locked(out: Path, id: str) -> Iterator[None]:
    """Hold the place of `id` below `out`; a second process gets one line, not a broken folder."""
    from filelock import FileLock, Timeout

    prepare(out)
    path = out / ".partial" / f"{id}.lock"
    with writing(path):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise RunError(f"{path} is no lock of a run: delete it or choose another --out")
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise RunError(
                f"{out / id} is being written by another process: wait for it, "
                "or choose another --out"
            ) from None
    try:
        yield
    finally:
        lock.release()


def places(out: Path, id: str) -> list[Path]:
    """What lies in `OUT/.partial` of this id's orders."""
    name = re.compile(re.escape(id) + "-[0-9a-f]{8}")
    partial = out / ".partial"
    found = partial.iterdir() if partial.is_dir() else ()
    return sorted(path for path in found if name.fullmatch(path.name))


def settle(out: Path, id: str) -> None:
    """Put a finished run in its place where a kill, of whatever order, came when the old one had left it.

    For commands that only read: they heal what they can, and otherwise say what they find.
    """
    with suppress(RunError, OSError):
        if not (out / id).exists() and any((at / "run" / MARK).exists() for at in places(out, id)):
            with locked(out, id):
                put_back(out, id)


def put_back(out: Path, id: str) -> None:
    """What `settle` does; the lock is held."""
    for place in places(out, id):
        if not os.path.lexists(out / id) and (place / "run" / MARK).exists():
            with writing(out / id):
                (place / "run").rename(out / id)
                shutil.rmtree(place)


@dataclass(frozen=True)
class Slot:
    """One run's place. Every method expects the lock to be held."""

    final: Path
    partial: Path

    @classmethod
    def of(cls, order: Order, out: Path) -> Slot:
        """The place of this order below `out`."""
        id = order.exhibit.id
        return cls(out / id, out / ".partial" / f"{id}-{order.digest[:8]}")

    @property
    def parts(self) -> Path:
        """Where finished pieces lie."""
        return self.partial / "parts"

    @property
    def began_fresh(self) -> bool:
        """Whether what lies here was begun by `--fresh`, which may then resume it."""
        with writing(self.partial):
            return (self.partial / "fresh").exists()

    def heal(self) -> bool:
        """Finish what a kill between the last renames left; True if a run came into place by it."""
        sealed = (self.partial / "run" / MARK).exists()
        put_back(self.final.parent, self.final.name)
        with writing(self.final):
            if (self.partial / "run" / MARK).exists():
                self._put_in_place()
                return True
            if (self.partial / "old").exists():
                shutil.rmtree(self.partial)
        return sealed

    def complete(self, order: Order) -> RunRecord | None:
        """The complete run of this very order, if it is there; `RunError` if it is damaged."""
        if not self.final.exists():
            return None
        if read_provenance(self.final)["order"] != order.digest:
            return None  # another config's run: it is replaced once this one is complete
        # a run that is not made again: all of it must be there, so that every file is compared with its checksum
        return read_record(self.final, whole=True)

    def replaced(self, order: Order) -> str:
        """A line on the complete run of another order that will be replaced; empty if none is."""
        try:
            known = read_provenance(self.final)
        except RunError:  # there is nothing, or nothing whole
            return ""
        if known["order"] == order.digest:
            return ""
        return (
            f"replaces the {known['scale']} run, seed {known['seed']}, in {self.final}; "
            "another --out keeps both"
        )

    def begin(self, *, fresh: bool) -> None:
        """Make room for parts; those of an interrupted run are gone on from."""
        with writing(self.partial):
            self._spare()
            if fresh and not self.began_fresh:
                shutil.rmtree(self.partial, ignore_errors=True)
            self.parts.mkdir(parents=True, exist_ok=True)
            if fresh:
                (self.partial / "fresh").touch()

    def draft(self) -> Path:
        """An empty folder in which the run is put together."""
        folder = self.partial / "run"
        with writing(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        return folder

    def seal(self, provenance: dict[str, Any]) -> RunRecord:
        """Declare the drafted folder complete, with a digest of each file, and put it in place."""
        seal(self.partial / "run", provenance)
        with writing(self.final):
            self._put_in_place()
            self._clear_up()
        return read_record(self.final)

    def _spare(self) -> None:
        """Refuse to replace what a user put here: only what a run wrote is ever deleted."""
        if self.final.is_dir():
            for found in foreign_files(self.final):
                raise RunError(
                    f"{found} is no file of a run, and {self.final} is to be replaced: "
                    "move it away or choose another --out"
                )
        elif self.final.exists():
            raise RunError(f"{self.final} is a file: move it away or choose another --out")

    def clear_earlier(self) -> int:
        """Remove the parts of any order of this id that code made which is no longer there; how many."""
        cleared = 0
        with writing(self.partial):
            for place in places(self.final.parent, self.final.name):
                for path in of_earlier_code(place / "parts"):
                    path.unlink()
                    cleared += 1
        return cleared

    def _clear_up(self) -> None:
        """Remove what other orders of this id began and left empty; parts that a run can claim are kept."""
        for place in places(self.final.parent, self.final.name):
            # the lock is on the id: nobody is at work there
            needed = (*(place / "parts").glob("*.nc"), place / "run" / MARK, place / "error.log")
            if not any(path.exists() for path in needed):
                shutil.rmtree(place, ignore_errors=True)

    def _put_in_place(self) -> None:
        self._spare()
        old = self.partial / "old"
        shutil.rmtree(old, ignore_errors=True)
        old.mkdir()
        if self.final.exists():
            self.final.rename(old / "run")
        (self.partial / "run").rename(self.final)
        shutil.rmtree(self.partial)
