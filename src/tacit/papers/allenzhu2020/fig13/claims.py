"""The claims of Figure 13: purified against each attacker, more against stronger ones."""

from collections.abc import Iterator

import xarray as xr

from tacit.base.estimate import Estimate
from tacit.lab import Bench, Claim, Expected, Judge, Part
from tacit.papers.allenzhu2020.deep.claims import gain
from tacit.papers.allenzhu2020.deep.settings import ATTACKERS, regime_of
from tacit.papers.allenzhu2020.fig13.settings import Attackers

PAIRS = (("linf4", "linf8"), ("l2half", "l2one"))  # weaker, stronger


def claims(data: xr.Dataset, config: Attackers, bench: Bench) -> Iterator[Claim]:
    """Two families: against the clean net, and stronger against weaker."""
    bar = "ours: purification in a number, the share of coarse shapes; more is more"
    regime = regime_of(config, over="neurons")
    judge = bench.claims("Section 8.4, Figure 13", source="words", bar=bar, regime=regime)
    layer = f"features of layer {config.layer}"
    text = f"{layer} have more of coarse shapes in each robust net than in the clean one"
    yield compared(judge, "each", text, data, [("clean", name) for name in config.attackers])
    text = f"{layer} have more of coarse shapes against stronger attackers"
    pairs = [pair for pair in PAIRS if set(pair) <= set(config.attackers)]
    yield compared(judge, "stronger", text, data, pairs)
    if left := [name for name in ATTACKERS if name not in config.attackers]:
        told = ", ".join(ATTACKERS[name].told for name in left)
        some = Expected(min=float(len(left)))
        yield judge.cannot("rows", f"the same against {told}", some, f"not run here: {told}")


def compared(
    judge: Judge, id: str, text: str, data: xr.Dataset, pairs: list[tuple[str, str]]
) -> Claim:
    """The family of these pairs, the second to have more than the first."""
    found: dict[tuple[str, str], Estimate] = {}
    for less, more in pairs:
        both = (data.coarse.sel(net=name) for name in (more, less))
        each = gain(*both, of=len(pairs), over="neurons")
        if each is not None:
            found[less, more] = each
    if not found:
        return judge.cannot(id, text, Expected(min=2.0), "not run here: no two such nets")
    zero, names = Expected(min=0.0), {"clean": "clean"} | {k: a.told for k, a in ATTACKERS.items()}
    parts = [
        Part(f"{more}.{less}", f"{names[more]} more than {names[less]}", zero, each)
        for (less, more), each in found.items()
    ]
    return judge.family(id, text, parts)
