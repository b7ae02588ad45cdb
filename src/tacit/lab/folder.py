"""The place of a run below OUT, so ordered that a kill at any moment loses nothing finished.

    OUT/ID                        a complete run, only ever put there by a rename
    OUT/.partial/ID-digest/parts  finished pieces of an interrupted run
    OUT/.partial/ID-digest/run    the folder being assembled; its provenance.json is written last
    OUT/.partial/ID-digest/old    what the new run replaces, until it is in place
    OUT/.partial/ID.lock          held while a process works on ID

The digest covers config, scale, seed, device and code: parts are only joined by what they are of.
"""

from __future__ import annotations

import fcntl
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.base.files import digest, write_json, writing
from tacit.errors import RunError
from tacit.lab.order import Order
from tacit.lab.record import MARK, RunRecord, foreign_files, read_provenance, read_record


def prepare(out: Path) -> None:
    """Make `out` a folder that can be written to, or say at once that it cannot be one."""
    with writing(out):  # to ask whether it exists may fail too: a name can be too long
        if out.exists() and not out.is_dir():
            raise RunError(f"{out} is a file, not a folder: choose another --out")
        (out / ".partial").mkdir(parents=True, exist_ok=True)


@contextmanager
def locked(out: Path, id: str) -> Iterator[None]:
    """Hold the place of `id` below `out`; a second process gets one line, not a broken folder."""
    prepare(out)
    with writing(out):
        stream = (out / ".partial" / f"{id}.lock").open("w")
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(
                f"{out / id} is being written by another process: wait for it, "
                "or choose another --out"
            ) from None
        yield


@dataclass(frozen=True)
class Slot:
    """One run's place. Every method expects the lock to be held."""

    final: Path
    partial: Path

    @classmethod
    def of(cls, order: Order, out: Path) -> Slot:
        """The place of this order below `out`."""
        id = order.exhibit.id
        return cls(out / id, out / ".partial" / f"{id}-{order.resume_digest[:8]}")

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
        with writing(self.final):
            if (self.partial / "run" / MARK).exists():
                self._put_in_place()
                return True
            if (self.partial / "old").exists():
                shutil.rmtree(self.partial)
        return False

    def complete(self, order: Order) -> RunRecord | None:
        """The complete run of this very order, if it is there; `RunError` if it is damaged."""
        if not self.final.exists():
            return None
        if read_provenance(self.final)["order"] != order.digest:
            return None  # another config's run: it is replaced once this one is complete
        return read_record(self.final)

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

    def begin(self, *, fresh: bool) -> bool:
        """Make room for parts; True if there are some of an interrupted run to go on from."""
        with writing(self.partial):
            self._spare()
            if fresh and not self.began_fresh:
                shutil.rmtree(self.partial, ignore_errors=True)
            self.parts.mkdir(parents=True, exist_ok=True)
            if fresh:
                (self.partial / "fresh").touch()
            return any(self.parts.iterdir())

    def draft(self) -> Path:
        """An empty folder in which the run is put together."""
        folder = self.partial / "run"
        with writing(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        return folder

    def seal(self, provenance: dict[str, Any]) -> RunRecord:
        """Declare the drafted folder complete, with a digest of each file, and put it in place."""
        folder = self.partial / "run"
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        known = {path.relative_to(folder).as_posix(): digest(path) for path in files}
        write_json(folder / MARK, {**provenance, "files": known})
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

    def _clear_up(self) -> None:
        """Remove what other orders of this id began and left empty; finished parts are kept."""
        name = re.compile(re.escape(self.final.name) + "-[0-9a-f]{8}")
        for folder in self.partial.parent.iterdir():
            # the lock is on the id: nobody is at work there
            if name.fullmatch(folder.name) and not any(
                path.is_file() and path.name != "fresh" for path in folder.rglob("*")
            ):
                shutil.rmtree(folder, ignore_errors=True)

    def _put_in_place(self) -> None:
        self._spare()
        old = self.partial / "old"
        shutil.rmtree(old, ignore_errors=True)
        old.mkdir()
        if self.final.exists():
            self.final.rename(old / "run")
        (self.partial / "run").rename(self.final)
        shutil.rmtree(self.partial)
