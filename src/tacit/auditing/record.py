"""What an audit found: one record, its JSON document, and two of them side by side."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from tacit.auditing.averaging import Averaging
from tacit.base.estimate import Estimate
from tacit.base.files import write_json, writing
from tacit.errors import CallError, RunError
from tacit.lab.store import plain
from tacit.measure.flags import Flag
from tacit.measure.robustness import RobustAt


@dataclass(frozen=True)
class UniversalAt:
    """One perturbation for all points: x - y delta where `signed`, else x + delta; the share that it breaks.

    `delta` is there after an audit; a saved record does not hold it.
    """

    radius: float
    signed: bool
    broken: float
    delta: Float[Tensor, "*shape"] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class AuditRecord:
    """Robust accuracy of `model` at n points as intervals, the flags, universal directions, averaging.

    `lower` and `upper` are each point's radius as an interval; an attack at given radii tells `upper` only up to
    these. A saved record does not hold them.
    """

    model: str
    n: int
    norm: str
    box: tuple[float, float] | None
    clean: Estimate
    curve: tuple[RobustAt, ...]
    flags: tuple[Flag, ...]
    universal: tuple[UniversalAt, ...]
    averaging: Averaging
    certificate: str
    attack: str
    lower: Float[Tensor, " n"] | None = field(default=None, compare=False, repr=False)
    upper: Float[Tensor, " n"] | None = field(default=None, compare=False, repr=False)

    def as_json(self) -> dict[str, Any]:
        """The document of `tacit audit --json`; 95% intervals stand under `confidence`."""
        return {
            "clean": self.clean.value,
            "n": self.n,
            "norm": self.norm,
            "curve": [
                {
                    "radius": at.radius,
                    "certified": at.certified.value,
                    "attacked": at.attacked.value,
                }
                for at in self.curve
            ],
            "flags": [asdict(flag) for flag in self.flags],
            "universal": [
                {"radius": at.radius, "signed": at.signed, "broken": at.broken}
                for at in self.universal
            ],
            "averaging": plain(self.averaging),
            "model": self.model,
            "box": plain(self.box),
            "certificate": self.certificate,
            "attack": self.attack,
            "confidence": {
                "level": 0.95,
                "clean": _ends(self.clean),
                "curve": [
                    {"certified": _ends(at.certified), "attacked": _ends(at.attacked)}
                    for at in self.curve
                ],
            },
        }

    def save(self, path: str | Path) -> None:
        """Write the document, whole or not at all."""
        with writing(path := Path(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, self.as_json())

    @staticmethod
    def load(path: str | Path) -> AuditRecord:
        """The record of a saved document, without points and directions."""
        try:
            return _record(json.loads(Path(path).read_text(encoding="utf-8")))
        except OSError as error:
            raise CallError(f"{path} cannot be read ({error.strerror})") from None
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"{path} is no record of an audit ({type(error).__name__}: {error})"
            ) from error


@dataclass(frozen=True)
class Row:
    """Two models at one radius; `more_robust` is first, second, equal or open, as the intervals decide."""

    radius: float
    first: RobustAt
    second: RobustAt

    @property
    def more_robust(self) -> str:
        """Decided on these points only where the certified end of one is above the attacked end of the other."""
        if self.first.certified.value > self.second.attacked.value:
            return "first"
        if self.second.certified.value > self.first.attacked.value:
            return "second"
        ends = {
            at.value for one in (self.first, self.second) for at in (one.certified, one.attacked)
        }
        return "equal" if len(ends) == 1 else "open"


@dataclass(frozen=True)
class Comparison:
    """Two audits side by side; as text, a table."""

    first: AuditRecord
    second: AuditRecord
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        lines = [
            f"l{self.first.norm} radius  {self.first.model:>22}  {self.second.model:>22}  more robust"
        ]
        clean = [f"{one.clean.value:.1%} of {one.n}" for one in (self.first, self.second)]
        lines.append(f"{'clean':>9}  {clean[0]:>22}  {clean[1]:>22}")
        lines += [
            f"{row.radius:>9.4g}  {_between(row.first):>22}  {_between(row.second):>22}  {row.more_robust}"
            for row in self.rows
        ]
        return "\n".join(lines)


def compare(first: AuditRecord, second: AuditRecord) -> Comparison:
    """The curves of two audits at the same radii, in the same norm and box."""
    for name in ("norm", "box"):
        one, other = getattr(first, name), getattr(second, name)
        if one != other:
            raise CallError(
                f"the audits differ in their {name}, {one} and {other}: audit both alike"
            )
    radii = [[at.radius for at in record.curve] for record in (first, second)]
    if radii[0] != radii[1]:
        raise CallError(
            f"the audits have different radii, {radii[0]} and {radii[1]}: audit both alike"
        )
    rows = (Row(at.radius, at, other) for at, other in zip(first.curve, second.curve, strict=True))
    return Comparison(first, second, tuple(rows))


def _between(at: RobustAt) -> str:
    return f"{at.certified.value:.1%} .. {at.attacked.value:.1%}"


def _ends(estimate: Estimate) -> list[float]:
    return [estimate.low, estimate.high]


def _estimate(found: dict[str, Any], ends: dict[str, Any], name: str, n: int) -> Estimate:
    low, high = ends[name]
    return Estimate(found[name], low, high, n)


def _record(document: dict[str, Any]) -> AuditRecord:
    known = document["confidence"]
    averaging = dict(document["averaging"])
    averaging["subclasses"] = tuple(averaging["subclasses"])
    box = document["box"]
    return AuditRecord(
        model=document["model"],
        n=document["n"],
        norm=document["norm"],
        box=None if box is None else (box[0], box[1]),
        clean=_estimate(document, known, "clean", document["n"]),
        curve=tuple(
            RobustAt(
                at["radius"],
                _estimate(at, ends, "certified", document["n"]),
                _estimate(at, ends, "attacked", document["n"]),
            )
            for at, ends in zip(document["curve"], known["curve"], strict=True)
        ),
        flags=tuple(Flag(**flag) for flag in document["flags"]),
        universal=tuple(UniversalAt(**at) for at in document["universal"]),
        averaging=Averaging(**averaging),
        certificate=document["certificate"],
        attack=document["attack"],
    )
