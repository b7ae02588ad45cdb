"""Features on disk: KEY.safetensors when complete, KEY.parts/FIRST.safetensors of an unfinished extraction.

Every file is whole or absent (written under another name, then renamed), and carries its key and the
sha256 of its numbers. A file that does not answer to both is told, and computed again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.base.files import read_tensors, write_tensors, writing
from tacit.errors import RunError

SUFFIX = ".safetensors"


@dataclass(frozen=True)
class FeatureCache:
    """The place of one set of n features. `tell` gets one line for each file that is not trusted."""

    folder: Path
    key: str
    n: int
    tell: Callable[[str], None]

    @classmethod
    def of(
        cls, folder: Path, parts: tuple[object, ...], n: int, tell: Callable[[str], None]
    ) -> FeatureCache:
        """The place whose key is the sha256 of the parts and n; the folder is made at once, or refused."""
        kept = cls(folder, hashlib.sha256(repr((*parts, n)).encode()).hexdigest(), n, tell)
        with writing(folder, kept._remedy):
            folder.mkdir(parents=True, exist_ok=True)
        return kept

    def whole(self) -> Float[Tensor, "n d"] | None:
        """The features, if they are here and sound."""
        x = self._read(self._path)
        if x is None or len(x) == self.n:
            return x
        self.tell(
            f"{self._path} holds {len(x)} rows, not {self.n}: its features are computed again"
        )
        return None

    def begun(self) -> Float[Tensor, "m d"] | None:
        """The first m features, as far as an interrupted extraction finished them without a gap."""
        found: list[Tensor] = []
        rows = 0
        while (part := self._read(self._part(rows))) is not None:
            if (found and part.shape[1] != found[0].shape[1]) or not 0 < len(part) <= self.n - rows:
                break
            found.append(part)
            rows += len(part)
        return torch.cat(found) if found else None

    def keep_part(self, first: int, x: Float[Tensor, "m d"]) -> None:
        """Keep finished rows first, first + 1, ... of an extraction that goes on."""
        self._write(self._part(first), x)

    def keep_whole(self, x: Float[Tensor, "n d"]) -> None:
        """Keep all features; the parts have done their work."""
        self._write(self._path, x)
        shutil.rmtree(self._part(0).parent, ignore_errors=True)

    @property
    def _path(self) -> Path:
        return self.folder / f"{self.key}{SUFFIX}"

    @property
    def _remedy(self) -> str:
        return (
            f"features cannot be kept in {self.folder}; give another folder (cache=PATH), point XDG_CACHE_HOME "
            "at one, or do without (cache=False)"
        )

    def _part(self, first: int) -> Path:
        return self.folder / f"{self.key}.parts" / f"{first}{SUFFIX}"

    def _read(self, path: Path) -> Tensor | None:
        """The numbers of a file, or None where it is absent or not to be trusted."""
        if not os.path.lexists(path):
            return None
        try:
            tensors, meta = read_tensors(path)
        except RunError as error:
            self.tell(f"{error}: its features are computed again")
            return None
        x = tensors.get("x", torch.empty(0))
        sound = x.dim() == 2 and x.dtype == torch.float32 and meta.get("key") == self.key
        if sound and meta.get("sha256") == _digest(x):
            return x
        self.tell(f"{path} is damaged: its features are computed again")
        return None

    def _write(self, path: Path, x: Tensor) -> None:
        """Write a file, whole or not at all; two processes may do so at once."""
        with writing(path, self._remedy):
            path.parent.mkdir(parents=True, exist_ok=True)
        meta = {"key": self.key, "sha256": _digest(x)}
        write_tensors(path, {"x": x}, meta, self._remedy)


def _digest(x: Tensor) -> str:
    """The sha256 of the numbers and the shape."""
    hasher = hashlib.sha256(repr(tuple(x.shape)).encode())
    hasher.update(x.contiguous().numpy().data)
    return hasher.hexdigest()
