"""What Theorem 5.6 and Corollary 5.7 say, at the radius of Theorem 5.4."""

from collections.abc import Iterator

import xarray as xr

from tacit.base.estimate import least
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import proportion
from tacit.papers._shared.crossed import crossed
from tacit.papers.allenzhu2020._shared.claims import holds_in
from tacit.papers.allenzhu2020.thm5_6.settings import Learners

LEARNERS = ("linear", "polynomial", "tangent")
NAMES = {
    "linear": "linear learner",
    "polynomial": "polynomial",
    "tangent": "tangent-kernel learner",
}
WHERE = {
    "linear": "Section 3; Corollary 5.7",
    "polynomial": "Corollary 5.7",
    "tangent": "Theorem 5.6",
}
REGIME = (
    "outside: Theorem G.1 has tau = d^-c with c < 5e-6; here tau = k^-1.75 at k = {k:g}, d = {d}; "
    "|<w*, z>| >= {margin:g} is ours, and the nets, not the learners, were trained with noise"
)


def claims(data: xr.Dataset, config: Learners, bench: Bench) -> tuple[Claim, ...]:
    """The learners, the net, the thresholded model, and the contrast."""
    regime = REGIME.format(k=config.k, d=config.d, margin=config.margin)
    judge = bench.claims("Section 5.2, Theorem 5.6", source="words",
                         bar="paper: robust error at least (1 - o(1))/2", regime=regime)  # fmt: skip
    return (*as_printed(judge), *cannot_do(data, config, judge), *can_do(data, config, judge))


def as_printed(judge: Judge) -> Iterator[Claim]:
    """Inside its assumptions it cannot be run."""
    reason = "the proof needs tau^(100000 (C+1)) >= 1/d with C > 1, so tau = d^-c with c < 5e-6 is above 0.99 "
    reason += (
        "for every d below 1e870: there each feature can be moved to 0, and no model can be right"
    )
    text = "every tangent-kernel function has robust error at least (1 - o(1))/2 at tau = k^-100"
    yield judge.cannot("printed", text, Expected(min=0.5), reason, where="Theorem 5.6; Theorem G.1")


def cannot_do(data: xr.Dataset, config: Learners, judge: Judge) -> Iterator[Claim]:
    """Learners of low complexity."""
    at = data.held.sel(radius=config.unit)
    dense = config.d * config.unit**3
    why = f"a dense perturbation moves sum_i x_i^3 by d tau^3 = {dense:.2g} only, less than one feature does"
    for name in LEARNERS:
        for kind, word in (("", "clean"), (".adv", "adversarially trained")):
            text = f"{NAMES[name]}, {word}: robust accuracy at k^-1.75 is at most 1/2"
            because = why if name == "polynomial" else ""
            yield holds_in(judge.but(where=WHERE[name]), f"{name}{kind}", text, Expected(max=0.5),
                           at.sel(model=f"{name}{kind}"), because)  # fmt: skip
    text = "with M = I, sigma_x = 0 the classes are linearly separable (clean accuracy of the linear learner)"
    yield holds_in(judge.but(bar="ours: 0.95 after these steps", where="Section 5.2"), "separable", text,
                   Expected(min=0.95), data.held.sel(model="linear", radius=0.0))  # fmt: skip


def can_do(data: xr.Dataset, config: Learners, judge: Judge) -> Iterator[Claim]:
    """The purified net and the thresholded model on the same points, and the contrast."""
    at = data.held.sel(radius=config.unit)
    bar = "ours: 1 - o(1) is read as 0.85"
    text = "the purified net: robust accuracy at k^-1.75 is 1 - o(1)"
    there = judge.but(where="Theorem 5.4", bar=bar)
    yield holds_in(there, "net.adv", text, Expected(min=0.85), at.sel(model="net.adv"))
    text = "the thresholded model: robust accuracy at k^-1.75 is 1 - o(1) (exact radii)"
    yield holds_in(there.but(where="Section 3"), "thresholded", text, Expected(min=0.85),
                   at.sel(model="thresholded"))  # fmt: skip
    others = [f"{name}{how}" for name in LEARNERS for how in ("", ".adv")]
    net = at.sel(model="net.adv").transpose("seed", "point").values.astype(float)
    gaps = [
        crossed(net - at.sel(model=name).transpose("seed", "point").values, of=len(others))
        for name in others
    ]
    text = (
        "the purified net is more robust at k^-1.75 than each of these learners (least difference)"
    )
    bar = "paper: robust training of the net beats low complexity"
    yield judge("contrast", text, Expected(min=0.0), least(gaps), bar=bar, source="order")
    kept = int((data.alone > 1).sum())
    text = "at tau = 1/k, without a margin, half of the points lose their own label (share that the thresholded "
    text += "model keeps)"
    yield judge("limit", text, Expected(value=0.5, tolerance=0.15), proportion(kept, data.alone.size),
                source="ours", bar="ours: 0.35 to 0.65",
                regime="inside: Assumption 2.1 with sigma_x = 0, M = I")  # fmt: skip
