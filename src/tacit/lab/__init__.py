"""Running exhibits: what they are, how they are found, and folders that survive a kill."""

from tacit.lab.bench import Bench
from tacit.lab.claim import Claim, Expected, judge, untestable
from tacit.lab.exhibit import Exhibit, Outcome, Paper, exhibits_of

__all__ = [
    "Bench",
    "Claim",
    "Exhibit",
    "Expected",
    "Outcome",
    "Paper",
    "exhibits_of",
    "judge",
    "untestable",
]
