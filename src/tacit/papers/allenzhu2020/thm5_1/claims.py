"""The claims of Theorem 5.1, of its other settings, of footnote 8 and of Section 7."""

from collections.abc import Iterator

import xarray as xr

from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of
from tacit.papers._shared.universal import for_every
from tacit.papers.allenzhu2020._shared.claims import holds_in
from tacit.papers.allenzhu2020._shared.settings import VARIANTS, regime_of, varied
from tacit.papers.allenzhu2020.thm5_1.settings import CleanTraining

WHERE = "Section 5.1, Theorem 5.1"
ACCURATE, BROKEN = Expected(min=0.98), Expected(max=0.10)
BAR = "ours: o(1) read as .02 of the points for clean error, a tenth for robust accuracy"
SMALL = "ours: o(1) read as a tenth"


def claims(data: xr.Dataset, config: CleanTraining, bench: Bench) -> tuple[Claim, ...]:
    """(a), (b) and (c), for every tau and t; then the other settings."""
    judge = bench.claims(WHERE, source="words", bar=BAR, regime=regime_of(config))
    return (
        *theorem(judge, data, config),
        *variants(judge.but(where="Section 2, of Theorem 5.1"), data, config),
        *beside(judge, data),
    )


def theorem(judge: Judge, data: xr.Dataset, config: CleanTraining) -> Iterator[Claim]:
    """The theorem's own statements."""
    tau = f"{config.tau:g}"
    a, b, c = (judge.but(where=f"{WHERE}({letter})") for letter in "abc")
    a = a.but(source="formula", bar=SMALL)
    text = "features are far from their start: sum <w_i, w0_i>^2 over sum ||w_i||^2 ||w0_i||^2"
    why = (
        "the winners were chosen by their start, and at this d the winning coordinate is a good part of it: "
        "||w0|| is sqrt(d) sigma_0, its largest coordinate about sqrt(2 log d) sigma_0"
    )
    yield for_every(a, "a.start", text, Expected(max=0.1), data.kept, why)
    text = "features are spread: sum <w_i, w_j>^2 over (sum ||w_i||^2)^2"
    why = "the neurons with a strong mixture (allenzhu2020.thm5.2) share its direction"
    yield for_every(a, "a.spread", text, Expected(max=0.1), data.overlap, why)
    yield holds_in(b, "b.accuracy", "clean accuracy", ACCURATE, data.clean)
    text = f"accuracy under -tau y M w*/||M w*||, tau = {tau}"
    yield holds_in(c, "c.universal", text, BROKEN, data.universal)
    beyond = [r for r in config.radii if r >= config.tau]
    if beyond:
        most = data.curve.sel(radius=beyond).max("radius")
        text = f"accuracy along M w* for every tau from {tau} to {max(beyond):g} (the largest)"
        yield for_every(c, "c.every", text, BROKEN, most)
    long = f"after {config.times} times the steps, {config.long_m:,} neurons"
    t = judge.but(where=f"{WHERE}, for every t")
    yield holds_in(
        t, "t.accuracy", f"clean accuracy {long}", ACCURATE, data.longer_clean,
    )  # fmt: skip
    text = f"accuracy under the universal perturbation {long}: training on does not help"
    yield holds_in(t, "t.universal", text, BROKEN, data.longer_universal)


def variants(judge: Judge, data: xr.Dataset, config: CleanTraining) -> Iterator[Claim]:
    """The theorem in each of the other settings."""
    for name in config.variants:
        here = data.sel(variant=name)
        told = judge.but(regime=regime_of(varied(config, name)))
        words = VARIANTS[name][0]
        why = (
            "points with <w*, z> near 0 are within reach of the noise" if name == "printed" else ""
        )
        yield holds_in(told, f"{name}.accuracy", f"clean accuracy, {words}", ACCURATE,
                       here.variant_clean, why)  # fmt: skip
        text = f"accuracy under the universal perturbation, {words}"
        yield holds_in(told, f"{name}.universal", text, BROKEN, here.variant_universal)


def beside(judge: Judge, data: xr.Dataset) -> Iterator[Claim]:
    """Footnote 8 and Section 7."""
    grown, without = (data.bias_growth.sel(spikes=name) for name in ("large", "none"))
    asked, usual = Expected(min=2.0), float(without.mean())
    text = "biases that are trained grow under large spike noise (mean bias of neurons that fire over its start; "
    text += f"without spikes {usual:.1f})"
    nothing = "they grow as much without spikes" if asked.admits(usual) else ""
    bar = "ours: twofold, where the paper has 'until it is large enough to de-noise'"
    yield judge("footnote8", text, asked, mean_of(grown, over="trainings"),
                where="Section 4.1, footnote 8", bar=bar, vacuous=nothing)  # fmt: skip
    ratio = data.gaussian_robust / data.gaussian_best
    text = "on a linearly labelled Gaussian mixture clean training is robust (its robust accuracy over the best)"
    regime = "inside: labels of a linear classifier over a well-conditioned Gaussian mixture"
    yield judge("gaussian", text, Expected(min=0.9), mean_of(ratio, over="trainings"),
                where="Section 7", bar="ours: nine tenths of the best", regime=regime)  # fmt: skip
