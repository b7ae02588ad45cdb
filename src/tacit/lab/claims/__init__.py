"""Claims: what is expected, by whom, in which regime; what was measured; and the verdict that follows."""

from tacit.lab.claims.claim import BARS, REGIMES, SOURCES, VERDICTS, Claim, Member, Verdict
from tacit.lab.claims.expected import Expected
from tacit.lab.claims.judge import SMOKE_REASON, Judge, Part

__all__ = [
    "BARS",
    "REGIMES",
    "SMOKE_REASON",
    "SOURCES",
    "VERDICTS",
    "Claim",
    "Expected",
    "Judge",
    "Member",
    "Part",
    "Verdict",
]
