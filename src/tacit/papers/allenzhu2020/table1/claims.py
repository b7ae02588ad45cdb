"""The claims of Table 1 and Remark 8.1, and what stronger attacks leave of them."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.base.estimate import Certain
from tacit.lab import Bench, Claim, Expected, Judge, Part
from tacit.measure.flags import raised_flags
from tacit.papers.allenzhu2020.deep.claims import difference, share_of
from tacit.papers.allenzhu2020.deep.settings import ATTACKERS, regime_of, why_not
from tacit.papers.allenzhu2020.table1.settings import EVERY, Table

Printed = dict[str, tuple[float, float]]
RANDOM: Printed = {  # robust and clean accuracy
    "linf4": (0.614, 0.823),
    "linf8": (0.457, 0.716),
    "l2half": (0.598, 0.783),
    "l2one": (0.423, 0.643),
}
FROM_CLEAN: Printed = {
    "linf4": (0.619, 0.839),
    "linf8": (0.460, 0.737),
    "l2half": (0.600, 0.792),
    "l2one": (0.422, 0.655),
}
CLEAN: Printed = dict.fromkeys(EVERY, (0.0, 0.939))
PRINTED = {"": RANDOM, "clean": FROM_CLEAN}  # by what follows the attacker in a net's name
STARTS = {"": "random weights", "clean": "the clean net", "sixteen": "random weights, ResNet-16"}

NEAR = 0.02  # below the paper's numbers
ACCURATE, BROKEN = 0.935, 0.005  # for 93.9% and 0.0%
SAME = 0.03  # Remark 8.1: "does not affect"
LITTLE, STRICTER = 0.03, 0.08  # what stronger attacks may take: set before the run
SHALLOW = 0.05  # a ResNet-16 below a ResNet-34


def claims(data: xr.Dataset, config: Table, bench: Bench) -> Iterator[Claim]:
    """The numbers, the order of the rows, Remark 8.1, stronger attacks."""
    bar = f"ours: the paper's number less {100 * NEAR:.0f} points"
    judge = bench.claims("Section 8, Table 1", source="number", bar=bar, regime=regime_of(config))
    rows = rows_by_net(data)
    yield clean_net(judge, rows, config)
    for start, printed in PRINTED.items():
        yield from numbers(judge, rows, config, start, printed)
    if left := not_run(config):
        told = f"not run here: {', '.join(left)}"
        yield judge.cannot("rows", "the other rows of the table", Expected(min=len(left)), told)
    yield from order(judge.but(source="order", bar="paper: the table's order"), rows)
    yield remark(judge.but(where="Section 8, Remark 8.1", source="words"), rows, config)
    yield from stronger(judge.but(source="ours"), rows)
    yield from shallow(judge.but(source="ours"), rows)


def rows_by_net(data: xr.Dataset) -> dict[tuple[str, str], xr.Dataset]:
    """Rows by attacker and what follows it in the net's name ("none" for the clean net)."""
    found = {}
    for i, (net, attacker) in enumerate(zip(data.net.values, data.attacker.values, strict=True)):
        start = "none" if net == "clean" else str(net).partition(".")[2]
        found[str(attacker), start] = data.isel(row=i)
    return found


def told(attacker: str) -> str:
    """As the paper calls it."""
    return ATTACKERS[attacker].told


def clean_net(judge: Judge, rows: dict[tuple[str, str], xr.Dataset], config: Table) -> Claim:
    """93.9% clean, 0.0% robust."""
    judge = judge.but(bar=f"ours: {ACCURATE:g} for 93.9%, {BROKEN:g} for 0.0%")
    text = "clean training: 93.9% clean accuracy, 0.0% robust accuracy under each attacker"
    of = 1 + len(EVERY)
    if not config.whole:
        return judge.cannot("clean", text, Expected(min=of), why_not(config))
    plain = share_of(rows[EVERY[0], "none"].plain, of=of)
    parts = [Part("accuracy", "clean accuracy", Expected(min=ACCURATE), plain)]
    for name in EVERY:
        found = share_of(rows[name, "none"].own, of=of)
        parts.append(Part(name, f"robust accuracy under {told(name)}", Expected(max=BROKEN), found))
    return judge.family("clean", text, parts)


def numbers(
    judge: Judge, rows: dict[tuple[str, str], xr.Dataset], config: Table, start: str, printed: Printed
) -> Iterator[Claim]:  # fmt: skip
    """Robust and clean accuracies of one row of the table, as far as it was run."""
    run = [name for name in EVERY if (name, start) in rows]
    if not run:
        return
    begun = STARTS[start]
    which = {"robust": ("own", 0), "accuracy": ("noisy", 1)}
    for kind, (variable, column) in which.items():
        id = f"{kind}.{start or 'random'}"
        word = "robust" if kind == "robust" else "clean"
        listed = ", ".join(f"{100 * printed[name][column]:.1f}%" for name in run)
        text = f"{word} accuracy of adversarial training from {begun} is at least the paper's ({listed})"
        if not config.whole:
            yield judge.cannot(id, text, Expected(min=len(run)), why_not(config))
        else:
            parts = [
                Part(
                    name,
                    f"{told(name)}: {word} accuracy",
                    Expected(min=round(printed[name][column] - NEAR, 3)),
                    share_of(rows[name, start][variable], of=len(run)),
                )
                for name in run
            ]
            yield judge.family(id, text, parts)


def not_run(config: Table) -> list[str]:
    """The rows of the table that this run leaves out."""
    nets = set(config.nets)
    every = [(name, start) for start in PRINTED for name in EVERY]
    out = [(name, start) for name, start in every if f"{name}.{start}".rstrip(".") not in nets]
    return [f"{told(name)} from {STARTS[start]}" for name, start in out]


def order(judge: Judge, rows: dict[tuple[str, str], xr.Dataset]) -> Iterator[Claim]:
    """Adversarial training is more robust than clean training, and less accurate."""
    robust = [key for key in rows if key[1] in PRINTED]
    gains, prices = [], []
    for name, start in robust:
        here, clean = rows[name, start], rows[name, "none"]
        id, of = f"{name}.{start or 'random'}", len(robust)
        text = f"{told(name)} from {STARTS[start]}: the gain"
        gain = difference(here.own, clean.own, of=of)
        gains.append(Part(id, text, Expected(min=0.0), gain))
        price = difference(clean.plain, here.noisy, of=of)
        prices.append(Part(id, f"{text[:-4]}price", Expected(min=0.0), price))
    text = "adversarial training has more robust accuracy than clean training, under each attacker"
    yield judge.family("order.robust", text, gains)
    text = "clean training has more clean accuracy than adversarial training"
    yield judge.family("order.clean", text, prices)


def remark(judge: Judge, rows: dict[tuple[str, str], xr.Dataset], config: Table) -> Claim:
    """Starting from the clean net affects neither accuracy."""
    judge = judge.but(bar=f"ours: {100 * SAME:.0f} points for 'does not affect'")
    text = "starting from the clean net changes neither robust nor clean accuracy"
    both = [name for name in EVERY if (name, "") in rows and (name, "clean") in rows]
    if 0 < len(both) < len(EVERY):
        text += f" (tried with {', '.join(map(told, both))} alone)"
    if not both:
        why = f"not run here: both starts, with starts=random,clean (this has {','.join(config.starts)})"
        return judge.cannot("remark8.1", text, Expected(min=8.0), why)
    within, parts = Expected(min=-SAME, max=SAME), []
    for name in both:
        for kind, variable in (("robust", "own"), ("clean", "noisy")):
            pair = (rows[name, start][variable] for start in ("clean", ""))
            found = difference(*pair, of=2 * len(both))
            parts.append(
                Part(f"{name}.{kind}", f"{told(name)}: change of {kind} accuracy", within, found)
            )
    return judge.family("remark8.1", text, parts)


def stronger(judge: Judge, rows: dict[tuple[str, str], xr.Dataset]) -> Iterator[Claim]:
    """What stronger attacks take from the robust accuracies of trained attackers."""
    robust = [key for key in rows if key[1] != "none"]
    kinds = {
        "strong": (LITTLE, robust, "longer attacks from several random starts take"),
        "strict": (STRICTER, [key for key in robust if not ATTACKERS[key[0]].sigma],
                   "the strict attack (APGD on margin, cross-entropy and targets; queries) takes"),
    }  # fmt: skip
    for kind, (most, keys, words) in kinds.items():
        judge = judge.but(bar=f"ours: {100 * most:.0f} points, set before any run")
        parts = []
        for name, start in keys:
            harder = rows[name, start][kind].values
            own = rows[name, start].own.values[: len(harder)]
            taken = share_of(own - harder, of=len(keys))
            text = (
                f"{told(name)} from {STARTS[start]}: leaves {harder.mean():.3f} of {own.mean():.3f}"
            )
            parts.append(Part(f"{name}.{start or 'random'}", text, Expected(max=most), taken))
        if parts:
            text = f"{words} at most {100 * most:.0f} points from robust accuracy"
            yield judge.family(kind, text, parts)
    raised = {
        f"{told(name)} from {STARTS[start]}": flags_of(rows[name, start])
        for name, start in robust
        if not ATTACKERS[name].sigma
    }
    if raised:
        found = [f"{row}: {', '.join(flags)}" for row, flags in raised.items() if flags]
        count = Certain(sum(map(len, raised.values())), "counted on these images", len(raised))
        text = "the strict attack raises no flag on nets trained against linf (number of flags)"
        judge = judge.but(
            source="check", bar="derived: each flag has its limit in tacit.measure.flags"
        )
        because = "; ".join(found)
        yield judge("flags", text, Expected(value=0.0), count, because=because)


def flags_of(row: xr.Dataset) -> list[str]:
    """The names of the flags that are raised."""
    shares = dict(zip(map(str, row.flag.values), map(float, row.flags.values), strict=True))
    return (
        [flag.name for flag in raised_flags(shares)] if np.isfinite(row.flags.values).all() else []
    )


def shallow(judge: Judge, rows: dict[tuple[str, str], xr.Dataset]) -> Iterator[Claim]:
    """A ResNet-16 beside the ResNet-34."""
    judge = judge.but(
        bar=f"ours: {100 * SHALLOW:.0f} points, set before any run", where="Section 8"
    )
    for (name, start), row in rows.items():
        if start == "sixteen" and (name, "") in rows:
            text = f"against {told(name)} a ResNet-16 is nearly as robust as the deeper net (its change)"
            found = difference(row.own, rows[name, ""].own)
            yield judge("sixteen", text, Expected(min=-SHALLOW), found)
