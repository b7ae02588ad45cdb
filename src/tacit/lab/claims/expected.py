"""What a claim expects of its measurement, and on which side of it an interval lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Side = Literal["inside", "outside", "across"]


@dataclass(frozen=True)
class Expected:
    """What the paper gives or predicts: one of `value`, `min`, `max` or `text`; `min` and `max` may go together.

    `tolerance` is absolute and belongs to whichever of the three numbers is set.
    """

    value: float | None = None
    min: float | None = None
    max: float | None = None
    text: str | None = None
    tolerance: float = 0.0

    @property
    def has_number(self) -> bool:
        """Whether there is something to compare with."""
        return any(number is not None for number in (self.value, self.min, self.max))

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest measurement that agree."""
        if self.value is not None:
            return self.value - self.tolerance, self.value + self.tolerance
        low = -math.inf if self.min is None else self.min - self.tolerance
        return low, math.inf if self.max is None else self.max + self.tolerance

    def admits(self, measured: float) -> bool:
        """Whether `measured` agrees; NaN never does."""
        if self.value is not None:
            # equal first: the expected value may be inf
            return measured == self.value or abs(measured - self.value) <= self.tolerance
        low, high = self.ends
        return low <= measured <= high

    def side(self, low: float, high: float) -> Side:
        """Whether all of [low, high] agrees, nothing of it, or a part; an interval with a NaN is across."""
        if self.admits(low) and self.admits(high):
            return "inside"
        least, largest = self.ends
        return "outside" if high < least or low > largest else "across"

    def as_json(self) -> dict[str, float | str | None]:
        """The contract's `{value | min | max | text}`, with `tolerance` where there is one."""
        numbers = {"value": self.value, "min": self.min, "max": self.max}
        out: dict[str, float | str | None] = {
            key: finite(number) for key, number in numbers.items() if number is not None
        }
        if self.text is not None:
            out["text"] = self.text
        if self.tolerance:
            out["tolerance"] = self.tolerance
        return out

    def __str__(self) -> str:
        parts = []
        slack = f"{self.tolerance:.2g}" if self.tolerance else ""
        if self.value is not None:
            parts.append(f"{self.value:.6g}" + (slack and f" ± {slack}"))
        if self.min is not None:
            parts.append(f"≥ {self.min:.6g}" + (slack and f" − {slack}"))
        if self.max is not None:
            parts.append(f"≤ {self.max:.6g}" + (slack and f" + {slack}"))
        return " and ".join(parts) if parts else (self.text or "")


def finite(number: float | None) -> float | None:
    """JSON has no inf or NaN: both become null."""
    return None if number is None or not math.isfinite(number) else float(number)
