"""The claims of Section 6.2 on pure starts."""

import xarray as xr

from tacit.lab import Bench, Claim, Expected
from tacit.papers._shared.universal import for_every
from tacit.papers.allenzhu2020._shared.claims import holds_in
from tacit.papers.allenzhu2020._shared.settings import regime_of
from tacit.papers.allenzhu2020.from_pure.settings import FromPure

WHERE = "Section 6.2"


def claims(data: xr.Dataset, config: FromPure, bench: Bench) -> tuple[Claim, ...]:
    """The mixture accumulates; what it does to robustness is a prediction of ours."""
    unit = config.k / config.d
    judge = bench.claims(WHERE, source="words", regime=regime_of(config),
                         bar="ours: Theta(k/d) read as a third of k/d at least")  # fmt: skip
    first, later = (data.relative.sel(course=name) / unit for name in ("pure", "longer"))
    steps = sum(config.clean_steps)
    text = (
        "from w_i = M_i clean training accumulates the mixture: mean beta over alpha, in k/d, after"
    )
    made = [
        for_every(judge, "accumulates", f"{text} {steps:,} steps", Expected(min=1 / 3), first),
        for_every(judge, "longer", f"{text} {config.times} times as many", Expected(min=1 / 3), later),
    ]  # fmt: skip
    text = "it goes on accumulating: beta after all steps over beta after the first"
    stepwise = judge.but(bar="paper: it will be accumulated step by step")
    why = "the mixture has reached its level by then"
    made.append(for_every(stepwise, "grows", text, Expected(min=1.0), later / first, why))
    ours = judge.but(source="ours", bar="ours: that of Theorem 5.3 here")
    text = "one neuron a feature stays robust all the same: accuracy under the worst attack"
    held = data.worst.sel(course="longer")
    why = f"{config.times} times the steps accumulate enough to break a part of the points"
    made.append(holds_in(ours, "robust", text, Expected(min=0.85), held, why))
    return tuple(made)
