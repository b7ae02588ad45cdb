"""How numbers, verdicts and counts read, the same in the terminal and in the report."""

import math
from collections.abc import Iterable

from tacit.lab.claims import SOURCES, VERDICTS, Claim, Member, Verdict

# symbol, class of the style sheet, colour on a terminal
LOOKS: dict[Verdict, tuple[str, str, str]] = {
    "holds": ("✓", "holds", "green"),
    "differs": ("✗", "differs", "red"),
    "as predicted": ("✓", "predicted", "cyan"),
    "not as predicted": ("✗", "surprising", "magenta"),
    "undecided": ("?", "open", "yellow"),
    "vacuous": ("∅", "vacuous", "bright_black"),
    "not testable here": ("○", "untested", "bright_black"),
}
BAR = {"paper": "the paper's", "derived": "derived from it", "ours": "our own"}
COUNTED: dict[Verdict, str] = {**{v: v for v in VERDICTS}, "holds": "hold", "differs": "differ"}


def in_ledger(claim: Claim) -> bool:
    """Whether the claim counts: no check of our own accuracy, no second look at another claim's measurement."""
    return claim.source != "check" and not claim.same_as


def count(claims: Iterable[Claim]) -> dict[Verdict, int]:
    """How many claims there are of each verdict."""
    verdicts = [claim.verdict for claim in claims if in_ledger(claim)]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def totals(claims: Iterable[Claim]) -> str:
    """`58 claims: 50 hold, 3 differ, 5 undecided`, without what does not occur; then checks and repeats."""
    every = list(claims)
    counted = count(every)
    number = sum(counted.values())
    told = [f"{n} {COUNTED[verdict]}" for verdict, n in counted.items() if n]
    text = f"{plural(number, 'claim')}: {', '.join(told) or 'none'}"
    checks = [claim.verdict for claim in every if claim.source == "check"]
    checks = [verdict for verdict in checks if verdict != "not testable here"]
    if checks:
        text += f"; {plural(len(checks), 'check')} of our own accuracy, {checks.count('holds')} met"
    repeats = sum(bool(claim.same_as) and claim.source != "check" for claim in every)
    if repeats:
        text += f"; {repeats} more repeat a measurement"
    return text


def plural(number: int, noun: str) -> str:
    """1 claim, 2 claims."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def origin(claim: Claim) -> str:
    """Whose statement it is, and where its bar comes from."""
    whose = SOURCES.get(claim.source, claim.source)
    kind, _, line = claim.bar.partition(": ")
    return f"{whose[0].upper()}{whose[1:]}. Bar: {line} ({BAR[kind]})."


def expected(claim: Claim | Member) -> str:
    """What the paper gives; JSON has null for an infinite value, and so has nothing to show."""
    if isinstance(claim, Claim) and claim.members:
        return f"all {len(claim.members)}"
    return str(claim.expected) or "∞"


def measured(claim: Claim) -> str:
    """The value with its interval.

    A value that is not finite is null in claims.json. Only an infinite one can agree with anything.
    """
    if claim.measured is None:
        agrees = claim.verdict in ("holds", "as predicted")
        return "∞" if agrees else "–" if claim.verdict == "not testable here" else "not finite"
    if claim.members:
        low, high = claim.interval or (0.0, 0.0)
        open_ones = f", {high - low:.0f} open" if high > low else ""
        return f"{claim.measured:.0f} of {len(claim.members)}{open_ones}"
    return with_interval(claim.measured, claim.interval)


def with_interval(value: float, interval: tuple[float, float] | None) -> str:
    """`0.316 ± 0.012`, or `0.98 [0.93, 1.00]` where the interval is lopsided: as many digits as it supports."""
    low, high = interval or (value, value)
    half = (high - low) / 2
    if not half or not math.isfinite(half):
        # next to nothing is rounding error, whose digits mean nothing
        text = f"{value:.{6 if abs(value) >= 1e-6 else 2}g}"
        return text if not half else f"{text} (no interval)"
    decimals = 1 - math.floor(math.log10(half))
    fixed = 0 <= decimals <= 6 and abs(value) < 1e6
    lopsided = abs((low + high) / 2 - value) > 0.1 * half
    if lopsided:
        told = [f"{x:.{decimals}f}" if fixed else f"{x:.4g}" for x in (value, low, high)]
        return f"{told[0]} [{told[1]}, {told[2]}]"
    return f"{value:.{decimals}f} ± {half:.{decimals}f}" if fixed else f"{value:.4g} ± {half:.2g}"


def sample_size(claim: Claim) -> str:
    """`n` with thin groups of three digits, and what it counts."""
    if not claim.n:
        return "–"
    return f"{claim.n:,}".replace(",", "\u2009") + (f" {claim.over}" if claim.over else "")


def duration(seconds: float) -> str:
    """Wall time as people say it."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 100 else f"{seconds / 3600:.1f} h"


def note(claim: Claim) -> str:
    """Why there is no interval, or whose measurement it is."""
    certain = f"Deterministic: {claim.deterministic}." if claim.deterministic else ""
    repeats = f"The measurement is that of {claim.same_as}." if claim.same_as else ""
    return f"{certain} {repeats}".strip()


def member(one: Member) -> tuple[str, str, str]:
    """Statement, expected and measured of one of a family."""
    value = "not finite" if one.measured is None else with_interval(one.measured, one.interval)
    return one.statement, expected(one), value
