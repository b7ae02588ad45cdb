"""How numbers, verdicts and counts read, the same in the terminal and in the report."""

import math
from collections.abc import Iterable

from tacit.lab.claims import VERDICTS, Claim, Verdict

SYMBOLS: dict[Verdict, str] = {
    "holds": "✓",
    "differs": "✗",
    "as predicted": "✓",
    "not as predicted": "✗",
    "undecided": "?",
    "vacuous": "∅",
    "not testable here": "○",
}
TONES: dict[Verdict, str] = {  # classes of the style sheet
    "holds": "holds",
    "differs": "differs",
    "as predicted": "predicted",
    "not as predicted": "surprising",
    "undecided": "open",
    "vacuous": "vacuous",
    "not testable here": "untested",
}
COUNTED: dict[Verdict, str] = {**{v: v for v in VERDICTS}, "holds": "hold", "differs": "differ"}


def count(claims: Iterable[Claim]) -> dict[Verdict, int]:
    """How many claims there are of each verdict."""
    verdicts = [claim.verdict for claim in claims]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def totals(claims: Iterable[Claim]) -> str:
    """`58 claims: 50 hold, 3 differ, 5 not testable here`, without what does not occur."""
    counted = count(claims)
    number = sum(counted.values())
    told = [f"{n} {COUNTED[verdict]}" for verdict, n in counted.items() if n]
    return f"{number} claim{'' if number == 1 else 's'}: {', '.join(told) or 'none'}"


def expected(claim: Claim) -> str:
    """What the paper gives; JSON has null for an infinite value, and so has nothing to show."""
    return str(claim.expected) or "∞"


def measured(claim: Claim) -> str:
    """The value with as many digits as its spread supports.

    A value that is not finite is null in claims.json. Only an infinite one can agree with anything.
    """
    if claim.measured is None:
        agrees = claim.verdict in ("holds", "as predicted")
        return "∞" if agrees else "–" if claim.verdict == "not testable here" else "not finite"
    if not claim.spread:
        # next to nothing is rounding error, whose digits mean nothing
        return f"{claim.measured:.{6 if abs(claim.measured) >= 1e-6 else 2}g}"
    decimals = 1 - math.floor(math.log10(claim.spread))
    if 0 <= decimals <= 6 and abs(claim.measured) < 1e6:
        return f"{claim.measured:.{decimals}f} ± {claim.spread:.{decimals}f}"
    return f"{claim.measured:.4g} ± {claim.spread:.2g}"


def sample_size(claim: Claim) -> str:
    """`n` with thin groups of three digits."""
    return f"{claim.n:,}".replace(",", "\u2009") if claim.n else "–"


def duration(seconds: float) -> str:
    """Wall time as people say it."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 100 else f"{seconds / 3600:.1f} h"
