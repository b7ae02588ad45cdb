r"""The law of one coordinate of the hidden vector z, and Assumption 2.1 with its constants named (allenzhu2020).

    z_i symmetric and independent,  |z_i| in {0} u [1/sqrt(k), 1],
    (a) E[z_i^2] = Theta(1/d),  (b) Pr[|z_i| = 1] = Omega(1/d),  (c) Pr[|z_i| = Theta(1/sqrt(k))] = Omega(k/d)

The paper's constants are free ("no dependencies among the constants", Section 2). Here they are numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import CallError

HAIR = 1e-12  # rounding of sums of probabilities and of 1/sqrt(k)


@dataclass(frozen=True)
class Piece:
    """|z| is uniform on [low, high] with this probability; low = high is one value."""

    low: float
    high: float
    probability: float

    def __post_init__(self) -> None:
        if not (0 < self.low <= self.high < math.inf):
            raise CallError(f"a piece from {self.low:g} to {self.high:g}: it needs 0 < low <= high")
        if not 0 < self.probability <= 1:
            raise CallError(f"a piece of probability {self.probability:g}: it lies in (0, 1]")

    @property
    def second_moment(self) -> float:
        """E[|z|^2] on the piece, (low^2 + low high + high^2) / 3."""
        return (self.low**2 + self.low * self.high + self.high**2) / 3

    def within(self, low: float, high: float) -> float:
        """The probability that |z| is of this piece and lies in [low, high]."""
        if self.low == self.high:
            return self.probability if low <= self.low <= high else 0.0
        part = min(high, self.high) - max(low, self.low)
        return self.probability * max(part, 0.0) / (self.high - self.low)


@dataclass(frozen=True)
class Assumption21:
    """The constants of Assumption 2.1: which numbers its Theta and Omega stand for.

    E[z^2] in [second_low, second_high] / d;  Pr[|z| = 1] >= largest / d;
    Pr[1/sqrt(k) <= |z| <= spread/sqrt(k)] >= small * k / d.
    """

    second_low: float = 0.1
    second_high: float = 10.0
    largest: float = 0.1
    small: float = 0.1
    spread: float = 2.0


@dataclass(frozen=True)
class HiddenLaw:
    """A symmetric law of z_i: 0, or a random sign times a value of one of the pieces."""

    pieces: tuple[Piece, ...]

    def __post_init__(self) -> None:
        if not self.pieces:
            raise CallError("a law without pieces: z would be 0; give at least one Piece")
        if self.nonzero > 1 + HAIR:
            raise CallError(
                f"the pieces have probability {self.nonzero:g} together: it is at most 1 (the rest is z = 0)"
            )

    @property
    def nonzero(self) -> float:
        """Pr[z != 0]."""
        return sum(piece.probability for piece in self.pieces)

    @property
    def second_moment(self) -> float:
        """E[z^2]."""
        return sum(piece.probability * piece.second_moment for piece in self.pieces)

    def within(self, low: float, high: float) -> float:
        """Pr[low <= |z| <= high]."""
        return sum(piece.within(low, high) for piece in self.pieces)

    def broken(self, d: int, k: float, constants: Assumption21) -> list[str]:
        """What Assumption 2.1 asks and this law does not give, each with the numbers; [] where it holds."""
        least, c, found = 1 / math.sqrt(k), constants, []
        for piece in self.pieces:
            if piece.low < least * (1 - HAIR) or piece.high > 1 + HAIR:
                found.append(
                    f"support: |z| reaches {piece.low:g} to {piece.high:g}, outside {{0}} u "
                    f"[1/sqrt(k), 1] = [{least:.6g}, 1]"
                )
        second = d * self.second_moment
        if not c.second_low <= second * (1 + HAIR) or not second <= c.second_high * (1 + HAIR):
            found.append(
                f"condition (a): d E[z^2] = {second:.4g} is outside [{c.second_low:g}, {c.second_high:g}]"
            )
        largest = d * self.within(1 - HAIR, 1 + HAIR)
        if largest < c.largest * (1 - HAIR):
            found.append(
                f"condition (b): d Pr[|z| = 1] = {largest:.4g} is below {c.largest:g} "
                f"by {c.largest - largest:.4g}"
            )
        small = d / k * self.within(least * (1 - HAIR), c.spread * least * (1 + HAIR))
        if small < c.small * (1 - HAIR):
            found.append(
                f"condition (c): (d/k) Pr[1 <= sqrt(k) |z| <= {c.spread:g}] = {small:.4g} is below "
                f"{c.small:g} by {c.small - small:.4g}"
            )
        return found


@dataclass(frozen=True)
class Spike:
    """Spike noise xi''_i: +-size with this probability, else 0, independent over i (Section 2).

    The paper allows any mean-zero law with |xi''_i| <= k^-0.501 and E[xi''_i^2] = O(sigma_x^2 / d).
    """

    size: float
    probability: float

    def __post_init__(self) -> None:
        if not (self.size > 0 and 0 < self.probability <= 1):
            raise CallError(
                f"spikes of size {self.size:g} with probability {self.probability:g}: both are positive, the "
                "second at most 1"
            )

    def broken(self, d: int, k: float, sigma_x: float, constant: float) -> list[str]:
        """What Section 2 asks of spikes and these do not give."""
        found = []
        most = k**-0.501
        if self.size > most * (1 + HAIR):
            found.append(f"spikes of size {self.size:g} exceed k^-0.501 = {most:.4g}")
        second, allowed = d * self.probability * self.size**2, constant * sigma_x**2
        if second > allowed * (1 + HAIR):
            found.append(
                f"spikes with d E[xi''^2] = {second:.4g} exceed {constant:g} sigma_x^2 = {allowed:.4g}"
            )
        return found


def two_level_law(
    d: int, k: float, *, largest: float = 2.0, small: float = 0.4, spread: float = 1.5
) -> HiddenLaw:
    """|z| = 1 with probability largest/d, uniform on [1, spread]/sqrt(k) with probability small k/d, else 0.

    E[z^2] = (largest + small (1 + spread + spread^2)/3) / d, whatever k is.
    """
    least = 1 / math.sqrt(k)
    ones, few = Piece(1.0, 1.0, largest / d), Piece(least, spread * least, small * k / d)
    return HiddenLaw((ones, few))
