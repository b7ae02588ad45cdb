"""What Theorem 5.4 and Corollary F.6 say, for each dictionary."""

from collections.abc import Iterator

import xarray as xr

from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of
from tacit.papers.allenzhu2020._shared.claims import holds_in
from tacit.papers.allenzhu2020._shared.settings import regime_of
from tacit.papers.allenzhu2020.thm5_4.settings import Box

NAMES = {"identity": "M = I", "block": "M block-diagonal"}
LOCAL = 0.1


def claims(data: xr.Dataset, config: Box, bench: Bench) -> tuple[Claim, ...]:
    """Accurate, broken, robust, local."""
    judge = bench.claims("Section 5.2, Theorem 5.4", source="words", bar="ours: 1 - o(1) is read as 0.98",
                         regime=regime_of(config))  # fmt: skip
    text = "99.9% robust accuracy after robust training, and .01% after clean training"
    why = "k in [d^.3334, d^.3999] with k^2.5 < d^(1 - 2c0)/log d has no k below d = 2e7, c0 = 1e-5"
    numbers = judge.but(where="Corollary F.6", source="number", bar="paper: as printed")
    return (
        *(
            claim
            for name in config.dictionaries
            for claim in of_one(data.sel(dictionary=name), str(name), judge)
        ),
        numbers.cannot("F6.numbers", text, Expected(min=0.999), why),
    )


def of_one(data: xr.Dataset, name: str, judge: Judge) -> Iterator[Claim]:
    """One dictionary."""
    told = NAMES[name]
    for net, word in (("clean", "clean"), ("pure", "adversarial")):
        text = f"{told}: {word} training has clean accuracy 1 - o(1)"
        yield holds_in(
            judge,
            f"accuracy.{net}.{name}",
            text,
            Expected(min=0.98),
            data.clean.sel(net=net).rename(fresh="point"),
        )
    few = "ours: o(1) is read as 0.1"
    many = "ours: 1 - o(1) is read as 0.85, as in l2"
    text = f"{told}: clean training is broken at ||M||_1/k^2 (accuracy under the worst attack)"
    held = data.worst.sel(net="clean", place="broken")
    yield holds_in(judge.but(bar=few), f"broken.{name}", text, Expected(max=0.1), held)
    text = f"{told}: clean training is broken where adversarial training withstands, at 1/(k^1.75 ||M||_inf)"
    held = data.worst.sel(net="clean", place="printed")
    yield holds_in(
        judge.but(bar=few, where="Corollary F.6"), f"gap.{name}", text, Expected(max=0.1), held
    )
    text = f"{told}: adversarial training withstands 1/(k^1.75 ||M||_inf) (worst attack)"
    held = data.worst.sel(net="pure", place="printed")
    yield holds_in(judge.but(bar=many), f"robust.{name}", text, Expected(min=0.85), held)
    text = f"{told}: sum ||w - w'||^2 over sum ||w||^2 is o(1)"
    why = "at these sizes the weights move by about their own length"
    bar = "ours: o(1) is read as a tenth, as in l2"
    found = mean_of(data.moved.values, over="trainings")
    yield judge(
        f"local.{name}", text, Expected(max=LOCAL), found, because=why, bar=bar, source="order"
    )
