"""The claims of Lemma B.2, Theorems C.1, C.2 and D.1, and Claim E.3."""

from collections.abc import Iterator

import xarray as xr

from tacit.lab import Bench, Claim, Expected, Judge
from tacit.papers._shared.universal import for_every
from tacit.papers.allenzhu2020._shared.settings import regime_of
from tacit.papers.allenzhu2020.lottery.settings import Lottery

NINE = "ours: nine in ten, where the statement is about all"


def claims(data: xr.Dataset, config: Lottery, bench: Bench) -> tuple[Claim, ...]:
    """At the start, in both phases, at the end."""
    judge = bench.claims(
        "Appendix B, Lemma B.2", source="formula", bar=NINE, regime=regime_of(config)
    )
    return (
        *start(judge, data, config),
        *phases(judge, data, config),
        *tickets(judge.but(where="Section 6.1", source="words"), data),
        *objective(judge, data, config),
        *gradient(judge, data),
    )


def start(judge: Judge, data: xr.Dataset, config: Lottery) -> Iterator[Claim]:
    """Lemma B.2."""
    text = "every feature has a surely lucky neuron: |S_j,sure| (the least over features)"
    mean = float(data.sure_mean.mean())
    why = f"{mean:.2g} a feature in the mean: d^(gamma c0/4) sqrt(1/log d) is no large number before d is huge"
    lucky = judge.but(bar="paper: Omega(d^(gamma c0/4)), so at least 1")
    yield for_every(lucky, "B2.sure", text, Expected(min=1.0), data.sure_least, why)
    most = 3 * config.d ** (2 * config.gamma * config.excess)
    text = "few are potentially lucky: |S_j,pot| = O(d^(2 gamma c0)) (the most over features)"
    yield for_every(judge.but(bar="ours: O read with constant 3"), "B2.pot", text, Expected(max=most),
                    data.pot_most)  # fmt: skip
    text = "all neurons are ordinary otherwise: S_ept (share of all)"
    yield for_every(judge, "B2.ept", text, Expected(min=0.9), data.ept.isel(moment=0))


def phases(judge: Judge, data: xr.Dataset, config: Lottery) -> Iterator[Claim]:
    """Theorems C.1 and C.2: the least share over the moments of each phase."""
    moments = data.moment.values
    early = data.sel(moment=[t for t in moments if 0 < t <= max(config.phase, moments[1])])
    late = data.sel(moment=[t for t in moments if t > max(config.phase, moments[1])])
    done = late.where(late.moment >= config.settled)
    whole, half = f"until T_b = {config.phase:.0f} steps", f"from T_b = {config.phase:.0f} steps on"
    times = float((data.pot_count.max("moment") / data.pot_count.isel(moment=0)).mean())
    why = f"many more coordinates pass the growing bias than at the start ({times:.0f} times as many in the mean)"
    wide = "the paper's log^2 d and Xi_2 are constants here: neurons are not that far from their start yet"
    first = judge.but(where="Appendix C, Theorem C.1")
    second = judge.but(where="Appendix C, Theorem C.2")
    if config.early > config.phase:
        reason = f"T_a = {config.early:.0f} steps is after T_b = {config.phase:.0f}: there is no such moment"
        yield first.cannot(
            "C1.ept+", "S_ept+ is all from T_a on until T_b", Expected(min=0.9), reason
        )
    else:
        between = early.sel(moment=early.moment >= config.early).ept_late.min("moment")
        yield for_every(first, "C1.ept+", "S_ept+ is all from T_a on until T_b (least share)",
                        Expected(min=0.9), between, wide)  # fmt: skip
    for told, id, text, values, because in (
        (first, "C1.sure", f"S_sure(0) is in S_sure(t) {whole}", early.sure, why),
        (first, "C1.pot", f"S_pot(t) is in S_pot(0) {whole}", early.pot, why),
        (first, "C1.ept", f"S_ept(t) is all {whole}", early.ept, why),
        (first, "C1.ept++", "S_ept++ is all at T_b", early.ept_more.isel(moment=[-1]), wide),
        (first, "C1.pot+", "S_pot+ is in S_pot(0) at T_b", early.pot_late.isel(moment=[-1]), wide),
        (second, "C2.ept+", f"S_ept+ is all {half}", late.ept_late, wide),
        (second, "C2.ept++", f"S_ept++ is all {half}", late.ept_more, wide),
        (second, "C2.sure", f"S_sure(0) is in S_sure(t) {half}", late.sure, why),
        (second, "C2.pot+", f"S_pot+(t) is in S_pot(0) {half}", late.pot_late, wide),
        (second, "C2.between", f"S_pot(t) is in S_pot+(t) {half}", late.pot_between, wide),
        (
            second,
            "C2.sure+",
            "S_sure(0) is in S_sure+(t) once the bias stays",
            done.sure_late,
            wide,
        ),
    ):
        least = values.min("moment")
        if bool(least.isnull().any()):
            yield told.cannot(
                id,
                f"{text} (least share)",
                Expected(min=0.9),
                "a set is empty in one of the trainings",
            )
            continue
        yield for_every(told, id, f"{text} (least share)", Expected(min=0.9), least, because)


def tickets(judge: Judge, data: xr.Dataset) -> Iterator[Claim]:
    """Section 6.1: who wins."""
    alive = float(data.sure_alive.mean())
    text = f"surely lucky neurons that fire win the feature of their ticket (share; {alive:.2f} of them fire)"
    if bool(data.foretold_sure.isnull().any()):
        yield judge.cannot(
            "winners.sure",
            text,
            Expected(min=0.8),
            "no surely lucky neuron is alive in one training",
        )
    else:
        bar = "ours: eight in ten, of some twenty neurons"
        yield for_every(
            judge.but(bar=bar), "winners.sure", text, Expected(min=0.8), data.foretold_sure
        )
    text = "neurons that fire have won the feature that they leaned to most at the start (share)"
    ours = judge.but(source="ours", bar="ours: six in ten")
    yield for_every(ours, "winners.all", text, Expected(min=0.6), data.foretold)
    text = "a feature won is kept: that of the end of the lottery is that of the end of training (share)"
    told = judge.but(
        where="Section 6.2", bar="ours: eight in ten, set after two runs had .89 and .9"
    )
    yield for_every(told, "kept", text, Expected(min=0.8), data.kept_ticket)


def objective(judge: Judge, data: xr.Dataset, config: Lottery) -> Iterator[Claim]:
    """Theorem D.1, on the fresh batches of the training."""
    judge = judge.but(where="Appendix D, Theorem D.1", source="words")
    at = config.settled
    if at >= data.sizes["step"]:
        why = "the bias does not reach its ceiling in these steps, and the statement is read from there on"
        yield judge.cannot("D1.mean", "mean objective", Expected(max=0.1), why)
        return
    later, looks = data.loss.isel(step=slice(at, None)), data.sel(moment=data.moment >= at)
    since = f"from step {at} on, where the bias stays"
    text = f"mean objective {since} (batch losses, and the largest regulariser)"
    loss = float(later.mean())
    why = f"the losses alone have {loss:.3f}; the rest is the regulariser"
    yield for_every(judge.but(bar="ours: o(1) read as a tenth"), "D1.mean", text, Expected(max=0.1),
                    later.mean("step") + looks.cost.max("moment"), why)  # fmt: skip
    text = f"clean accuracy at every moment {since} (the least)"
    yield for_every(judge.but(bar="ours: 1 - o(1) read as .98"), "D1.accuracy", text, Expected(min=0.98),
                    looks.accuracy.min("moment"))  # fmt: skip
    share = (later <= 0.2).mean("step")
    text = f"iterations {since}, with a risk of o(1) (share with loss at most .2)"
    yield for_every(judge.but(bar="paper: 99%; ours: o(1) read as .2"), "D1.share", text, Expected(min=0.99),
                    share)  # fmt: skip


def gradient(judge: Judge, data: xr.Dataset) -> Iterator[Claim]:
    """Claim E.3 and Section 6.2."""
    judge = judge.but(where="Section 6.2; Appendix E, Claim E.3", source="words")
    text = "minus the gradient along M w* is positive at every moment (least mean over neurons that fire)"
    positive = judge.but(bar="paper: quite positive")
    yield for_every(positive, "E3.mean", text, Expected(min=0.0), data.pull.min("moment"))
    text = "minus the gradient along M w* is positive in every neuron that fires (least share over the moments)"
    yield for_every(judge, "E3.each", text, Expected(min=0.9), data.pulled.min("moment"))
