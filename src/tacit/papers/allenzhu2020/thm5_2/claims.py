"""The claims of Theorem 5.2, Section 6.2 and Lemma E.2."""

import math
from collections.abc import Iterator

import xarray as xr

from tacit.base.estimate import Certain
from tacit.lab import Bench, Claim, Expected
from tacit.papers._shared.universal import for_every
from tacit.papers.allenzhu2020._shared.settings import regime_of
from tacit.papers.allenzhu2020.thm5_2.settings import Mixed

WHERE = "Section 5.1, Theorem 5.2"
GAMMA = 0.1  # of Lemma B.2


def claims(data: xr.Dataset, config: Mixed, bench: Bench) -> tuple[Claim, ...]:
    """All, of the clean nets."""
    return tuple(found(data.sel(course="clean"), config, bench))


def found(data: xr.Dataset, config: Mixed, bench: Bench) -> Iterator[Claim]:
    """One by one."""
    judge = bench.claims(
        WHERE, source="formula", bar="ours: d^c read as a factor 3", regime=regime_of(config)
    )
    text = "the mean of beta over all neurons and features, in k/d"
    why = "most neurons lose the lottery and stay small: over those that fire it is {:.2g}"
    said = why.format(float(data.fire_mean.mean()))
    yield for_every(judge, "mean", f"{text}: from below", Expected(min=1 / 3), data.all_mean, said)
    yield for_every(judge, "mean.above", f"{text}: from above", Expected(max=3.0), data.all_mean)
    text = "the mean of beta over the neurons that fire and all features, in k/d"
    ours = judge.but(source="ours")
    yield for_every(ours, "mean.fire", text, Expected(min=1 / 3), data.fire_mean)
    text = "the mean of beta over the mean of alpha, as in (6.1), over neurons that fire, in k/d"
    yield for_every(judge.but(where="Section 6.2, (6.1)"), "relative", text, Expected(min=1 / 3),
                    data.relative)  # fmt: skip
    text = "|beta_ij| < k/d^(1-c), c <= .001 (the largest over neurons that fire, in k/d)"
    paper = judge.but(bar="paper: k/d^(1-c), c in [0, 0.001]")
    why = "the mean is of order k/d, so the largest of so many is above it"
    yield for_every(paper, "beta", text, Expected(max=config.d**0.001), data.largest, why)
    text = "share of beta_ij below 3 k/d, over neurons that fire"
    yield for_every(ours, "beta.most", text, Expected(min=0.95), data.within)
    text = "features that one neuron leans to at the start, |N_i| (the most)"
    yield for_every(
        judge.but(bar="ours: O(1) read as 5"), "sets", text, Expected(max=5.0), data.most
    )
    text = "neurons that fire, lean to one feature at most, are more than half of one, and have alpha > 1/2 ("
    text += "number over d)"
    yield for_every(
        judge.but(bar="ours: Omega(d) read as d/2, alpha > d^-c as 1/2"),
        "single",
        text,
        Expected(min=0.5),
        data.single,
    )
    yield from lemma(data, config, bench)
    yield from section(data, config, bench)


def lemma(data: xr.Dataset, config: Mixed, bench: Bench) -> Iterator[Claim]:
    """Lemma E.2."""
    c0 = math.log(config.m) / math.log(config.d) - 1
    xi = config.d ** (2 * GAMMA * c0)
    judge = bench.claims("Appendix E, Lemma E.2", source="formula", regime=regime_of(config),
                         bar="derived: constant 1, Xi_2 = d^(2 gamma c0), gamma = .1")  # fmt: skip
    text = f"sum <w_i, M w*> over surely lucky neurons is k d/Xi_2^7 at least, {xi**-7:.2g} k d (in k d)"
    few = float(data.sure_count.mean())
    why = f"{few:.0f} neurons are surely lucky at these sizes, where the lemma has one or more a feature"
    yield for_every(judge, "E2.sum", text, Expected(min=xi**-7), data.sure_sum, why)
    bound = (
        config.k**3 * xi**4 * config.sigma_x**2 / (config.decay * config.d**2)
        if config.decay
        else math.inf
    )
    text = "<w_i, M w*> >= -(k^3 Xi_2^4 sigma_x^2)/(lambda d^2) for every neuron (the least over the bound)"
    reach = float(data.reach.max())
    if bound > reach:
        least = Certain(
            float(data["least"].min()) / bound,
            "the least of all neurons of these nets",
            data["least"].size,
        )
        why = f"the bound is {bound:.3g} here, and no <w_i, M w*> is beyond ||w_i|| ||M w*|| <= {reach:.3g}"
        yield judge("E2.each", text, Expected(min=-1.0), least, vacuous=why)
    else:
        yield for_every(judge, "E2.each", text, Expected(min=-1.0), data["least"] / bound)
    ours = judge.but(source="ours", bar="ours: all but one in a hundred")
    text = "<w_i, M w*> > 0 (share of neurons that fire)"
    yield for_every(ours, "E2.positive", text, Expected(min=0.99), data.positive)


def section(data: xr.Dataset, config: Mixed, bench: Bench) -> Iterator[Claim]:
    """Section 6.2: what the mixture sees on points and along M w*."""
    judge = bench.claims("Section 6.2, (6.2)", source="formula", regime=regime_of(config),
                         bar="ours: O~ read as log d, for 99 in 100 pairs of neuron and point")  # fmt: skip
    text = "mixtures see little of points: |<v_i, x>| in (k/d) ||x|| (99% quantile)"
    why = "the mixture is uneven: some neurons hold dozens of features strongly, and see each of them on points"
    yield for_every(judge, "quiet", text, Expected(max=math.log(config.d)), data.seen, why)
    text = "mixtures see much of M w*: <v_i, delta> in (k/sqrt(d)) ||delta|| (mean over neurons that fire)"
    order = judge.but(where="Section 6.2", bar="ours: Omega read as a third")
    yield for_every(order, "loud", text, Expected(min=1 / 3), data.met)
