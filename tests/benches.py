"""A run without a folder: parts kept in memory, a bench made of them, and what its claims say."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from tacit.base.progress import Silent
from tacit.lab.bench import Bench
from tacit.lab.claims import Claim
from tacit.lab.exhibit import Outcome


class Memory(dict[str, xr.Dataset]):
    """The parts of a run, in a dictionary."""

    def put(self, name: str, data: xr.Dataset) -> None:
        self[name] = data


def new_bench(
    parts: Memory | None = None, *, scale: str = "laptop", seed: int = 0, said: list | None = None
) -> Bench:
    """A bench on the CPU; `said` collects its warnings."""
    say = None if said is None else said.append
    return Bench(scale, seed, "cpu", Silent(), Memory() if parts is None else parts, say)


def verdicts(made: Outcome | Sequence[Claim]) -> dict[str, str]:
    """The verdict of each claim of a run, by its id."""
    return {claim.id: claim.verdict for claim in getattr(made, "claims", made)}
