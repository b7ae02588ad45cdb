"""From a measurement to a verdict, which is as strong as the evidence and no stronger.

    holds, differs        all of the 95% interval agrees with what was expected; nothing of it does
    undecided             a part of it does: the reason says how many samples it would take
    vacuous               the statement could not have failed here
    not testable here     nothing was measured that could decide it

For a prediction of our own (`source="ours"`) the first two read `as predicted` and `not as predicted`. A value
that no chance entered (`Certain`) has no interval and decides by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tacit.base.estimate import Certain, Estimate
from tacit.errors import CallError
from tacit.lab.claims.claim import BARS, REGIMES, SOURCES, Claim, Member, Verdict
from tacit.lab.claims.expected import Expected, finite

SMOKE_REASON = "smoke scale tests the code, not the claim"
SIDES: dict[str, Verdict] = {"inside": "holds", "outside": "differs", "across": "undecided"}
Measured = Estimate | Certain


class Part(NamedTuple):
    """One of a family, before it is judged: its estimate is made with `of` the family's size."""

    id: str
    statement: str
    expected: Expected
    measured: Measured


@dataclass(frozen=True)
class Judge:
    """What the claims of one place have in common: where they stand, whose they are, their bar and their regime.

    `Bench.claims` makes it, `but` changes what is different further on, and each claim is then one call:

        judge = bench.claims("Section 3", source="formula", bar="paper: eq. (4)", regime="inside: all of them")
        judge("radius", "the critical radius is 1/sqrt(K)", Expected(value=1.0, tolerance=0.01), radius)
    """

    where: str
    source: str
    bar: str
    regime: str
    smoke: bool = False

    def but(self, *, where: str = "", source: str = "", bar: str = "", regime: str = "") -> Judge:
        """The same judge for claims that differ in these."""
        told = {"where": where, "source": source, "bar": bar, "regime": regime}
        return replace(self, **{name: text for name, text in told.items() if text})  # type: ignore[arg-type]

    def __call__(
        self, id: str, statement: str, expected: Expected, measured: Measured | float,
        *, because: str = "", vacuous: str = "", same_as: str = "", any_size: bool = False,
        where: str = "", source: str = "", bar: str = "", regime: str = "",
    ) -> Claim:  # fmt: skip
        """The claim with its verdict.

        A bare number is refused. `because` explains a difference in one sentence. `vacuous` says why it could not
        have failed, if it could not. `any_size`: it is exact at smoke scale too. `same_as`: the `exhibit:claim`
        whose measurement this is.
        """
        judge = self.but(where=where, source=source, bar=bar, regime=regime)
        measured = judge._checked(id, expected, measured)
        if self.smoke and not any_size:
            return judge._made(
                id, statement, expected, measured, "not testable here", SMOKE_REASON, same_as
            )
        if vacuous:
            return judge._made(id, statement, expected, measured, "vacuous", vacuous, same_as)
        verdict = SIDES[expected.side(*interval_of(measured))]
        reason = "" if verdict == "holds" else because
        if verdict == "undecided":
            reason = what_it_takes(expected, measured)
        elif verdict == "differs" and not because:
            reason = f"measured {measured.value:.6g} where {expected} was expected"
        return judge._made(id, statement, expected, measured, verdict, reason, same_as)

    def cannot(
        self, id: str, statement: str, expected: Expected, reason: str, *, where: str = "", source: str = "",
        bar: str = "", regime: str = "",
    ) -> Claim:  # fmt: skip
        """A claim that this machine or this setting cannot decide, and why."""
        judge = self.but(where=where, source=source, bar=bar, regime=regime)
        judge._checked(id, Expected(min=0.0), Certain(0.0, reason))
        return judge._made(id, statement, expected, None, "not testable here", reason, "")

    def family(
        self,
        id: str,
        statement: str,
        parts: Sequence[Part],
        *,
        because: str = "",
        same_as: str = "",
    ) -> Claim:
        """One verdict on several statements about one draw: all hold, one surely does not, or it is open.

        Measured is how many agree; its interval runs from those that surely do to those that may. The parts'
        estimates have to be made with `of=len(parts)`, so that their intervals hold together with 95%.
        """
        sides = [part.expected.side(*interval_of(part.measured)) for part in parts]
        agree = sum(part.expected.admits(part.measured.value) for part in parts)
        sure, possible = sides.count("inside"), len(parts) - sides.count("outside")
        n = max((part.measured.n for part in parts), default=0)
        over = next((p.measured.over for p in parts if isinstance(p.measured, Estimate)), "")
        found = Estimate(float(agree), float(sure), float(possible), n, over)
        expected = Expected(min=float(len(parts)))
        claim = self(id, statement, expected, found, because=because, same_as=same_as)
        named = {
            s: ", ".join(p.id for p, side in zip(parts, sides, strict=True) if side == s)
            for s in SIDES
        }
        reason = claim.reason
        if claim.verdict == "undecided":
            reason = f"not decided: {named['across']}"
        elif claim.verdict in ("differs", "not as predicted"):
            reason = f"{because or 'outside the band'}: {named['outside']}"
        members = tuple(
            Member(p.id, p.statement, p.expected, p.measured.value, told(p.measured)) for p in parts
        )
        return replace(claim, reason=reason, members=members)

    def _checked(self, id: str, expected: Expected, measured: Measured | float) -> Measured:
        """Refuse, with the claim's name, what could not be judged or would be shown without its origin."""
        if not expected.has_number:
            raise CallError(
                f"claim {id}: words alone cannot be judged; expect a value, a min or a max"
            )
        if not isinstance(measured, (Estimate, Certain)):
            raise CallError(
                f"claim {id}: {measured!r} has neither an interval nor a reason to need none; measure an "
                "Estimate (tacit.base.statistics), or say why chance has no part in it with Certain(value, why)"
            )
        if isinstance(measured, Certain) and not measured.why:
            raise CallError(
                f"claim {id}: Certain needs its reason, why chance has no part in {measured.value!r}"
            )
        if isinstance(measured, Estimate) and not measured.n:
            raise CallError(
                f"claim {id}: the estimate {measured.value!r} has no number of samples (n)"
            )
        if self.source not in SOURCES:
            raise CallError(f"claim {id}: source {self.source!r} is none of {', '.join(SOURCES)}")
        for name, text, known in (("bar", self.bar, BARS), ("regime", self.regime, REGIMES)):
            kind, _, line = text.partition(": ")
            if kind not in known or not line:
                raise CallError(
                    f"claim {id}: {name} {text!r} is none of {', '.join(known)}, then ': ' and why"
                )
        return measured

    def _made(
        self, id: str, statement: str, expected: Expected, measured: Measured | None, verdict: Verdict,
        reason: str, same_as: str,
    ) -> Claim:  # fmt: skip
        """The record."""
        estimate = measured if isinstance(measured, Estimate) else None
        return Claim(
            id, statement, self.where, expected,
            None if measured is None else measured.value,
            finite(estimate.spread) if estimate else None,
            0 if measured is None else measured.n,
            verdict, reason, self.source, self.bar, self.regime,
            interval=told(measured),
            over=estimate.over if estimate else "",
            same_as=same_as,
            deterministic=measured.why if isinstance(measured, Certain) else "",
        )  # fmt: skip


def interval_of(measured: Measured) -> tuple[float, float]:
    """The 95% interval; a certain value is its own."""
    if isinstance(measured, Certain) or math.isnan(measured.value):
        return measured.value, measured.value
    return measured.low, measured.high


def told(measured: Measured | None) -> tuple[float, float] | None:
    """The interval of the record: none where chance has no part."""
    return (measured.low, measured.high) if isinstance(measured, Estimate) else None


def what_it_takes(expected: Expected, measured: Measured) -> str:
    """Why a claim is undecided, and about how many samples would decide it if the value stayed what it is.

    Intervals shrink as 1/sqrt(n), those of a share of 0 or 1 as 1/n.
    """
    if math.isnan(measured.value):
        return "the measurement is not a number"
    assert isinstance(measured, Estimate), "a certain number is on one side"
    low, high, over = measured.low, measured.high, measured.over or "samples"
    across = f"the 95% interval [{low:.4g}, {high:.4g}] reaches across the bar {expected}"
    if not math.isfinite(low) or not math.isfinite(high):
        return f"{across}; {measured.n:,} {over} give no interval"
    power = 1 if measured.value in (low, high) else 2
    needed = 0.0
    for bar in (end for end in expected.ends if low <= end <= high):
        distance = abs(bar - measured.value) - measured.fixed
        reach = measured.value - low if bar < measured.value else high - measured.value
        if distance <= 0:
            exact = (
                "the value lies on the bar"
                if bar == measured.value
                else "the method is not exact enough"
            )
            return f"{across}; no number of {over} decides it: {exact}"
        needed = max(needed, measured.n * ((reach - measured.fixed) / distance) ** power)
    return f"{across}; at this value it would take about {rounded_up(needed)} {over}, not {measured.n:,}"


def rounded_up(number: float) -> str:
    """To two digits, upwards: 1,300, 4.2e+09."""
    unit = 10.0 ** max(math.floor(math.log10(number)) - 1, 0)
    whole = math.ceil(number / unit) * unit
    return f"{whole:,.0f}" if whole < 1e7 else f"{whole:.1e}"
