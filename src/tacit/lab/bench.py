"""The bench an exhibit works on: seeds, device, progress, and parts that survive a kill."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from tacit.base.progress import Progress
from tacit.lab.claim import judge
from tacit.lab.claims import Claim, Expected, Judge
from tacit.lab.exhibit import Scale
from tacit.lab.parts import DiskParts

if TYPE_CHECKING:
    import torch
    import xarray as xr

    from tacit.lab.models.store import Models

T = TypeVar("T")


@runtime_checkable
class Parts(Protocol):
    """Finished pieces of a run, kept in its folder until the run is complete."""

    def get(self, name: str) -> xr.Dataset | None:
        """The part, if an earlier, interrupted run finished it."""

    def put(self, name: str, data: xr.Dataset) -> None:
        """Keep the part; it is on disk, whole, when this returns."""


@dataclass(frozen=True)
class Bench:
    """What a run is given besides its config.

    `seed` is the first of the repeats' seeds; `device` is "cpu" or "cuda", and `insisted` on if it was asked for
    by name; `say` takes warnings, `told` are those it had. Two runs with the same config and seed on one machine
    and thread count agree bit for bit.
    """

    scale: Scale
    seed: int
    device: str
    progress: Progress
    parts: Parts | DiskParts
    say: Callable[[str], None] | None = None
    told: set[str] = field(default_factory=set)
    insisted: bool = True

    @property
    def smoke(self) -> bool:
        """Whether the run is too small to decide a claim about the world."""
        return self.scale == "smoke"

    def claims(self, where: str, *, source: str, bar: str, regime: str) -> Judge:
        """The judge of claims with these in common (`tacit.lab.claims.judge`); at smoke scale it decides none."""
        return Judge(where, source, bar, regime, self.smoke)

    def judge(
        self, id: str, statement: str, where: str, expected: Expected, measured: float,
        *, n: int, spread: float | None = None, because: str = "",
    ) -> Claim:  # fmt: skip
        """The protocol of other packages from before claims had a source (`tacit.lab.claim`)."""
        return judge(
            id, statement, where, expected, measured,
            n=n, smoke=self.smoke, spread=spread, because=because,
        )  # fmt: skip

    def tell(self, line: str | None) -> None:
        """A warning to the user, once, before the work that it is about; None: there is nothing to warn of."""
        if line and self.say and line not in self.told:
            self.told.add(line)
            self.say(f"warning: {line}")

    def seeds(self, repeats: int) -> list[int]:
        """The seeds of the repeats: N, N+1, ..."""
        return [self.seed + i for i in range(repeats)]

    def generator(self, *names: str | int | float, seed: int | None = None) -> torch.Generator:
        """A random stream of its own for each purpose, so that adding one leaves the others alone.

        Drawn on the CPU, so that a seed means the same data on every device.
        """
        return stream_of(self.seed if seed is None else seed, *names)

    def identity(self) -> tuple[object, ...]:
        """What of the bench can change a result, for `identity_of`: no bars, no warnings, no store."""
        return self.scale, self.seed, self.device, stream_of

    @property
    def models(self) -> Models:
        """The store of trained nets, which exhibits share."""
        from tacit.lab.models.shelf import models_folder
        from tacit.lab.models.store import Models

        return Models(models_folder(), self.tell, self.device)

    def steps(self, items: Iterable[T], label: str) -> Iterator[T]:
        """Iterate with a progress bar that shows the step and the time left."""
        todo = list(items)
        with self.progress.track(label, len(todo)) as advance:
            for item in todo:
                yield item
                advance()

    def part(self, name: str, compute: Callable[[], xr.Dataset]) -> xr.Dataset:
        """The named piece of the run: read back if an interrupted run finished it, else computed.

        What is computed is returned as it was stored, so that a resumed run and an uninterrupted one
        see the same bits. It is read back only if the code of `compute`, all that this calls, and the values
        that it was given are what they were.
        """
        parts = self.parts
        if isinstance(parts, DiskParts):  # what is kept in memory does not outlive its code
            parts = parts.made_by(compute)
            if not parts.identified:
                self.tell(
                    f"part {name} will not be resumed if this run is interrupted: it uses something that cannot "
                    "be compared with what it was (say, an open file)"
                )
        known = parts.get(name)
        if known is not None:
            return known
        parts.put(name, compute())
        stored = parts.get(name)
        assert stored is not None, f"part {name} was stored and cannot be read"
        return stored


def stream_of(*names: str | int | float) -> torch.Generator:
    """The random stream of that name."""
    import torch

    text = "/".join(str(name) for name in names)
    # hash() changes from process to process; of the state torch's CPU generator keeps the lower 32 bits alone,
    # so that each of them has to depend on every letter
    state = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
    return torch.Generator().manual_seed(state)
