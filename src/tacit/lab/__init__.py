"""Running exhibits: what they are, how they are found, and folders that survive a kill."""

from tacit.base.estimate import Certain, Estimate
from tacit.lab.bench import Bench
from tacit.lab.claim import judge, untestable
from tacit.lab.claims import Claim, Expected, Judge, Part
from tacit.lab.exhibit import Exhibit, Outcome, Paper, exhibits_of

__all__ = [
    "Bench",
    "Certain",
    "Claim",
    "Estimate",
    "Exhibit",
    "Expected",
    "Judge",
    "Outcome",
    "Paper",
    "Part",
    "exhibits_of",
    "judge",
    "untestable",
]
