"""What is asked of an exhibit: everything that decides the bits of a run, and how to ask again."""

import dataclasses
import hashlib
import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import CallError
from tacit.lab.exhibit import SCALES, Exhibit, Scale
from tacit.lab.settings import as_text
from tacit.lab.store import plain

PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Order:
    """An exhibit with its config, scale, first seed and device ("cpu" or "cuda")."""

    exhibit: Exhibit
    config: Any
    scale: Scale
    seed: int
    device: str

    @property
    def digest(self) -> str:
        """The same for the same request, in any process and on any machine."""
        request = [self.exhibit.id, plain(self.config), self.scale, self.seed, self.device]
        return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()

    @property
    def code(self) -> str:
        """The digest of the exhibit's code, claims and figure included, and of all that they call."""
        from tacit.base.sources import code_digest  # `tacit list` does without

        parts = ("run", "draw", "animate")
        return code_digest(*((self.exhibit.code, part) for part in parts))

    @property
    def settings(self) -> dict[str, Any]:
        """The fields in which the config differs from the exhibit's own at this scale."""
        usual = self.exhibit.scales[self.scale]
        names = (field.name for field in dataclasses.fields(self.config))
        return {
            name: getattr(self.config, name)
            for name in names
            if getattr(self.config, name) != getattr(usual, name)
        }

    @property
    def command(self) -> str:
        """The shell command that gives this order."""
        words = ["tacit", "run", self.exhibit.id, "--scale", self.scale]
        words += ["--seed", str(self.seed), "--device", self.device]
        for name, value in self.settings.items():
            words += ["--set", f"{name}={as_text(value)}"]
        return shlex.join(words)

    @property
    def python(self) -> str:
        """The Python call that gives this order."""
        arguments = [repr(self.exhibit.id), f"scale={self.scale!r}", f"seed={self.seed}"]
        arguments += [f"device={self.device!r}"]
        arguments += [f"{name}={value!r}" for name, value in self.settings.items()]
        return f"tacit.run({', '.join(arguments)})"


def known_scale(name: str) -> Scale:
    """The scale of that name; `CallError` if there is none."""
    if name not in SCALES:
        raise CallError(f"scale {name!r} is none of {', '.join(SCALES)}")
    return name


def known_seed(raw: str | int) -> int:
    """The first seed of the repeats; `CallError` if it is none."""
    text = str(raw)
    if not text.isdecimal():
        raise CallError(f"seed takes a whole number from 0 on, as in --seed 0; got {text!r}")
    return int(text)


def known_out(raw: str) -> Path:
    """The folder of the run folders; an empty name is a slip (`--out "$DIR"`), not this folder."""
    if not raw:
        raise CallError("--out takes a folder, as in --out runs; got ''")
    return Path(raw)
