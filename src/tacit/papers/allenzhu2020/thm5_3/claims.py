"""The claims of Theorem 5.3 and of what the paper says around it."""

from collections.abc import Iterator

import xarray as xr

from tacit.base.estimate import Estimate
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of
from tacit.papers._shared.crossed import crossed
from tacit.papers._shared.universal import for_every
from tacit.papers.allenzhu2020._shared.claims import holds_in, share_of
from tacit.papers.allenzhu2020._shared.settings import VARIANTS, WEAK, regime_of, varied
from tacit.papers.allenzhu2020.thm5_3.settings import Adversarial

WHERE = "Section 5.1, Theorem 5.3"
ACCURATE, BROKEN, ROBUST = Expected(min=0.98), Expected(max=0.10), Expected(min=0.85)
BAR = "ours: o(1) read as .02 of the points for clean error, .15 for robust error"
WORST = "the worst of universal, FGM and PGD"
ATTACKERS = {
    "pgd": "PGD",
    "universal": "the universal perturbation, dense mixtures added to the data",
    "random": "random perturbations",
    "weak": f"FGM of {WEAK:g} tau",
}


def claims(data: xr.Dataset, config: Adversarial, bench: Bench) -> tuple[Claim, ...]:
    """(a), (b), (c); the mixture; other attackers and starts; other settings."""
    judge = bench.claims(WHERE, source="words", bar=BAR, regime=regime_of(config))
    return (
        *theorem(judge, data, config),
        *certificates(judge, data, config),
        *mixture(judge, data, config),
        *attackers(judge, data, config),
        *variants(judge, data, config),
        *large(judge, config),
    )


def theorem(judge: Judge, data: xr.Dataset, config: Adversarial) -> Iterator[Claim]:
    """Before, after, and without."""
    clean, pure, control = (data.sel(course=name) for name in ("clean", "pure", "control"))
    tau = f"at tau = {config.tau:g}"
    before = judge.but(where="Section 5.1, Theorem 5.1(c)")
    yield holds_in(
        before, "before", f"robust accuracy of clean nets {tau}, {WORST}", BROKEN, clean.worst
    )
    a, b, c = (judge.but(where=f"{WHERE}({letter})") for letter in "abc")
    yield holds_in(
        a, "a.fgm", f"accuracy under FGM {tau} after adversarial training by FGM", ROBUST, pure.own
    )
    yield holds_in(b, "b.worst", f"robust accuracy after it {tau}, {WORST}", ROBUST, pure.worst)
    yield holds_in(judge, "accuracy", "clean accuracy after it", ACCURATE, pure.clean)
    text = f"a control with as many clean steps is not robust ({tau}, {WORST})"
    ours = judge.but(source="ours", bar="ours: .15")
    yield holds_in(ours, "control", text, Expected(max=0.15), control.worst)
    text = "features move little: sum ||w_i - w'_i||^2 over sum ||w_i||^2"
    why = "weights grow while they turn: theta(w, w') is near 1 (allenzhu2020.angles), lengths are not the same"
    yield for_every(c.but(bar="ours: o(1) read as a tenth", source="formula"), "c.local", text,
                    Expected(max=0.1), pure.moved, why)  # fmt: skip


def certificates(judge: Judge, data: xr.Dataset, config: Adversarial) -> Iterator[Claim]:
    """(b) is about any perturbation: certified accuracy at parts of tau."""
    judge = judge.but(where=f"{WHERE}(b)", bar="ours: set before any run")
    for id, part, least in (("quarter", 4, 0.95), ("half", 2, 0.3), ("whole", 1, 0.5)):
        text = f"share of points that no perturbation of length tau/{part} breaks, certified"
        text = text.replace("tau/1", "tau")
        if "certified" not in data:
            why = "the net smoothed in closed form has no certificate here yet; attacks bound it from above"
            yield judge.cannot(f"b.certified.{id}", text, Expected(min=least), why)
            continue
        far = config.tau / part
        found = data.certified.sel(stage="pure") >= far
        share = crossed(found.values.astype(float), ends=(0.0, 1.0))
        clean = float((data.certified.sel(stage="clean") >= far).mean())
        why = f"what could be proved; the attack leaves {float(data.worst.sel(course='pure').mean()):.2f} at tau"
        yield judge(f"b.certified.{id}", f"{text} (clean nets: {clean:.2f})", Expected(min=least), share,
                    because=why)  # fmt: skip


def mixture(judge: Judge, data: xr.Dataset, config: Adversarial) -> Iterator[Claim]:
    """The mixture goes, perturbations become sparse, the clean objective does not suffer."""
    clean, pure, control = (data.sel(course=name) for name in ("clean", "pure", "control"))
    fivefold = judge.but(where="Section 5.1, feature purification", bar="ours: fivefold")
    text = "the mean mixture coefficient of neurons that fire falls (before over after)"
    fall = clean.dense / abs(pure.dense)
    yield for_every(fivefold, "mixture", text, Expected(min=5.0), fall)
    text = "the same relative to alpha"
    fall = clean.relative / abs(pure.relative)
    yield for_every(fivefold, "mixture.relative", text, Expected(min=5.0), fall)
    sparse = judge.but(
        where="Section 5.1, density of adversarial perturbations", bar="ours: twofold"
    )
    text = "perturbations become sparser in the dictionary: features they are spread over, before over after"
    yield for_every(
        sparse, "density", text, Expected(min=2.0), clean.participation / pure.participation
    )
    equal = judge.but(where="Sections 1 and 7", bar="derived: no worse, so at most 1")
    text = "the robust net's clean objective is no worse than the clean net's (after over before)"
    yield for_every(equal, "objective", text, Expected(max=1.0), pure.objective / clean.objective)
    text = "nor than the control's, which had as many steps"
    why = (
        "the control goes on lowering the clean objective, which adversarial training does not see"
    )
    yield for_every(equal, "objective.control", text, Expected(max=1.0), pure.objective / control.objective,
                    why)  # fmt: skip


def attackers(judge: Judge, data: xr.Dataset, config: Adversarial) -> Iterator[Claim]:
    """(a) for any attacker; Section 4.2 and footnote 11."""
    a = judge.but(where=f"{WHERE}(a)")
    for name in config.attackers:
        here = data.sel(training=name)
        text = f"trained against {ATTACKERS[name]}: accuracy under the same"
        before = float(here.other_before.mean())
        text = f"{text} (mean over {config.few} trainings; clean nets {before:.2f})"
        vacuous = "clean nets withstand it as well" if ROBUST.admits(before) else ""
        yield a(f"a.{name}", text, ROBUST, share_of(here.other_own), vacuous=vacuous)
    if "universal" in config.attackers:
        ours = judge.but(
            where="Section 5.1, footnote 11", source="ours", bar="ours: that of Theorem 5.3 here"
        )
        text = f"with dense mixtures added to the training data: robust accuracy, {WORST}"
        why = "the net hides what it is attacked by, and other directions remain"
        yield holds_in(
            ours, "footnote11", text, ROBUST, data.other_worst.sel(training="universal"), why
        )
    start = data.sel(training="from_random")
    judge = judge.but(where="Section 4.2")
    text = "adversarial training from random weights avoids the mixture (clean nets' coefficient over its own)"
    first = data.relative.sel(course="clean").values[: config.few] / abs(
        start.other_relative.values
    )
    yield judge(
        "random.mixture",
        text,
        Expected(min=5.0),
        mean_of(first, over="trainings"),
        bar="ours: fivefold",
    )
    yield holds_in(
        judge, "random.worst", f"and is robust: accuracy under {WORST}", ROBUST, start.other_worst
    )


def variants(judge: Judge, data: xr.Dataset, config: Adversarial) -> Iterator[Claim]:
    """The theorem in each of the other settings; Corollary F.3 where there is no noise."""
    for name in config.variants:
        here, words = data.sel(variant=name, stage="pure"), VARIANTS[name][0]
        told = judge.but(where="Section 2, of Theorem 5.3", regime=regime_of(varied(config, name)))
        why = "points with <w*, z> near 0 lose their label within tau" if name == "printed" else ""
        text = f"robust accuracy after adversarial training, {words}, {WORST}"
        yield holds_in(told, f"{name}.worst", text, ROBUST, here.variant_worst, why)
        if name == "quiet":
            both = data.variant_worst.sel(variant=name)
            gain = both.sel(stage="pure").astype(float) - both.sel(stage="clean").astype(float)
            found: Estimate = crossed(gain.transpose(..., "point").values, ends=(-1.0, 1.0))
            text = "without noise robust training beats clean training in robust accuracy (by)"
            yield told("F3.beats", text, Expected(min=0.0), found, where="Appendix F, Corollary F.3",
                       bar="paper: beats")  # fmt: skip


def large(judge: Judge, config: Adversarial) -> Iterator[Claim]:
    """What only larger sizes can show."""
    judge = judge.but(where="Appendix F, Corollary F.3", source="number", bar="paper: as printed")
    why = "k in [d^.3334, d^.3999] with k^2.5 < d^(1 - 2c0)/log d has no k below d = 2e7, c0 = 1e-5"
    text = "99.9% robust accuracy after robust training, and .01% after clean training"
    yield judge.cannot("F3.numbers", text, Expected(min=0.999), why)
