"""What a paper says of all trainings, starts or nets, none of which can be tried: one bar for it everywhere.

One beyond a bound refutes a statement about every one of them, as a fact. Where none is, the share that keeps it
is judged, which n of n decide from n = 6 on: the lower end of the exact interval is .54 there.
"""

import xarray as xr

from tacit.base.estimate import Certain
from tacit.lab import Claim, Expected, Judge
from tacit.measure import proportion

MOST = Expected(min=0.5)
MOST_BAR = "ours: more than half, where the statement is about all"
NINE = "ours: nine in ten, where the statement is about all"  # 36 of 36 decide it


def for_every(
    judge: Judge, id: str, text: str, expected: Expected, values: xr.DataArray, because: str = "",
    over: str = "trainings",
) -> Claim:  # fmt: skip
    """The claim that all `values`, one of each of what `over` names, are as expected."""
    worst, n = float(values.max() if expected.min is None else values.min()), values.size
    if not expected.admits(worst):
        found = Certain(worst, f"one of the {over} beyond the bound is a counterexample", n)
        return judge(id, f"{text} (the worst of {n} {over})", expected, found, because=because)
    text, share = f"{text} (share of {over} with {expected})", proportion(n, n, over=over)
    return judge(id, text, MOST, share, bar=MOST_BAR)
