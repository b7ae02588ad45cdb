"""The claims of Section 6.2 on transfer."""

from collections.abc import Iterator

import xarray as xr

from tacit.lab import Bench, Claim, Expected
from tacit.papers._shared.universal import for_every
from tacit.papers.allenzhu2020._shared.claims import holds_in, without_margin
from tacit.papers.allenzhu2020._shared.settings import regime_of
from tacit.papers.allenzhu2020.transfer.settings import Transferred

WHERE = "Section 6.2"


def claims(data: xr.Dataset, config: Transferred, bench: Bench) -> tuple[Claim, ...]:
    """What the first net's perturbations do to the others."""
    return tuple(found(data, config, bench))


def found(data: xr.Dataset, config: Transferred, bench: Bench) -> Iterator[Claim]:
    """One by one."""
    bar = "ours: a tenth of the points, where the paper has 'can also attack'"
    judge = bench.claims(WHERE, source="words", bar=bar, regime=regime_of(config))
    broken, held = Expected(max=0.1), Expected(min=0.85)
    tau = f"tau = {config.tau:g}"
    for id, kind, bare, text in (
        (
            "other",
            "universal",
            "printed",
            "one net's universal direction breaks a narrower net trained apart",
        ),
        (
            "points",
            "fgm",
            "printed_fgm",
            "one net's FGM perturbations break a narrower net trained apart",
        ),
    ):
        text = f"{text} (accuracy at {tau}; {without_margin(data[bare].sel(net='other'))})"
        yield holds_in(judge, id, text, broken, data[kind].sel(net="other"))
    ours = judge.but(source="ours", bar="ours: .9, set before any run")
    text = "the direction that was learned is M w* (cosine)"
    yield for_every(ours, "dense", text, Expected(min=0.9), data.with_dense)
    text = "the directions learned on two nets agree (cosine)"
    yield for_every(ours, "agree", text, Expected(min=0.9), data.with_other)
    ours = judge.but(source="ours", bar="ours: that of Theorem 5.3 here")
    text = f"after adversarial training the first net withstands its own old direction (accuracy at {tau})"
    yield holds_in(ours, "purified", text, held, data.universal.sel(net="pure"))
