"""The claims of Figures 2 and 5: what the paper says or theory predicts, and what the trained nets are."""

import math
from collections.abc import Iterator
from functools import partial

import xarray as xr

from tacit.base.estimate import Certain, Estimate, between, farthest, least, most
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of, proportion
from tacit.papers._shared.fits import listed
from tacit.papers._shared.universal import MOST, MOST_BAR
from tacit.papers.min2024.fig2.settings import Conjecture, Experiment

BEST = math.sqrt(0.5)
SHOWN = 0.1  # the captions' alpha in (b) to (d), and up to which radii are claimed
SMALL = "ours: 'close' read as a tenth of |F| at a centre, set after runs had .03 to .09"


def figure_of(config: Experiment) -> str:
    """Where the paper has the experiment with so many subclasses."""
    return "Appendix A.2, Figure 5" if config.K > 10 else "Section 5.1, Figure 2"


def claims(data: xr.Dataset, config: Conjecture, bench: Bench) -> tuple[Claim, ...]:
    """What the paper says of the figure, by means over an alpha's nets; then how exact training was."""
    figure = figure_of(config)
    judge = bench.claims(figure, source="words", bar=SMALL,
                         regime="outside: by gradient flow, as in Conjecture 1; the figure's by SGD")  # fmt: skip
    quiet = [alpha for alpha in config.alpha if alpha <= SHOWN]
    made: list[Claim] = []
    for p in config.p:
        here = data.sel(p=p)
        made += distances(judge.but(where=figure + " (a)"), here, p)
        made += learned(judge.but(where=figure + " (b, c, d)"), here, config, p)
        made += broken(judge, here.sel(alpha=quiet), config, p) if quiet else []
    check_judge = judge.but(where="Accuracy of the training", source="check")
    return (*made, *exact(check_judge, data, config))


def each_alpha(found: xr.DataArray) -> list[Estimate]:
    """For each alpha the mean over the nets; they are judged together."""
    mean = partial(mean_of, of=found.sizes["alpha"], over="nets of an alpha")
    if "end" not in found.dims:
        return [mean(found.sel(alpha=a)) for a in found.alpha]
    ends = [found.sel(end=end) for end in ("lower", "upper")]
    return [between(*(mean(end.sel(alpha=a)) for end in ends)) for a in found.alpha]


def share(good: xr.DataArray) -> Estimate:
    """The share of nets, of all alphas."""
    return proportion(int(good.sum()), good.size, over="nets")


def distances(judge: Judge, data: xr.Dataset, p: float) -> Iterator[Claim]:
    """(a): small, and at p = 1 rising with alpha."""
    name = "F" if p == 1 else f"F^({p:g})"
    dist = data.distance.sortby("alpha")
    low, high = (dist.sel(end=end, drop=True) for end in ("lower", "upper"))
    mean = high.mean("seed")
    text = f"dist(f, {name}) is much less than 1 at every alpha ({listed(map(float, mean.alpha))}; the largest)"
    why = "Conjecture 1 is for small alpha: "
    why += f"{float(mean[-1]):.2g} at alpha = {float(mean.alpha[-1]):g}, {float(mean[0]):.2g} at the smallest"
    largest = most(each_alpha(dist))
    yield judge(f"distance.p{p:g}", text, Expected(max=0.1), largest, because=why, source="ours")
    if p == 1 and len(mean) > 1:
        text = "dist(f, F) increases with alpha (that at the largest over that at the smallest)"
        ends = (low[-1] / high[0], high[-1] / low[0])
        rise = between(*(mean_of(end, over="pairs of nets") for end in ends))
        yield judge("distance.rises", text, Expected(min=1.0), rise, bar="paper: increases")


def learned(judge: Judge, data: xr.Dataset, config: Experiment, p: float) -> Iterator[Claim]:
    """(b) to (d): what the neurons learn."""
    what = "the two class averages" if p == 1 else f"the {config.K} centres"
    text = f"neurons learn only {what}: 95% of each sign's mass within cosine .95 (share of nets)"
    yield judge(f"learned.p{p:g}", text, MOST, share(data.within.min("sign") >= 0.95), bar=MOST_BAR)
    if p > 1:
        text = f"neurons learn each of {what} (the least mass of any, over an equal share)"
        bar = "ours: half of what F^(p) gives it"
        yield judge(f"all.p{p:g}", text, Expected(min=0.5), least(each_alpha(data.least)), bar=bar)


def broken(judge: Judge, data: xr.Dataset, config: Experiment, p: float) -> Iterator[Claim]:
    """(e): critical radii, and robust accuracy halfway between 1/sqrt(K) and sqrt(2)/2, where alpha <= .1."""
    edge = 1 / math.sqrt(config.K)
    judge = judge.but(where=f"{judge.where} (e); Section 3, Remark 2")
    theory, name = (edge, "1/sqrt(K)") if p == 1 else (BEST, "sqrt(2)/2")
    text = f"p = {p:g}: the critical radius is {name}, alpha <= {SHOWN:g} (largest relative gap)"
    bar = "ours: 2%; noise of alpha = .1 moves a coordinate by 1% of 1/sqrt(10)"
    gap = farthest(each_alpha(data.critical / theory))
    yield judge(f"radius.p{p:g}", text, Expected(max=0.02), gap, bar=bar)
    middle = (edge + BEST) / 2
    kept = ((data.upper if p == 1 else data.lower) > middle).mean("point")
    what, good = ("broken by an attack", kept <= 0.01) if p == 1 else ("certified", kept >= 0.99)
    text = f"p = {p:g}: at radius {middle:.3g} 99 points of 100 are {what} (share of nets)"
    yield judge(f"robust.p{p:g}", text, MOST, share(good), bar=MOST_BAR)
    if p == 1 and config.K > 10:
        text = "the ReLU net breaks earlier than at K = 10 (critical radius times sqrt(10))"
        bar = "paper: more vulnerable than at K = 10, where it is 1/sqrt(10)"
        ratio = most(each_alpha(data.critical * math.sqrt(10)))
        yield judge("earlier", text, Expected(max=1.0), ratio, bar=bar)


def exact(judge: Judge, data: xr.Dataset, config: Conjecture) -> Iterator[Claim]:
    """How far the trainings of this run can be trusted; they say nothing of others. KKT (Lyu & Li 2020, Theorem
    4.4): by the cosine for p > 2, by the residual at p = 1, which has kinks."""
    goal, why, n = (
        f"exp({config.log_loss:g})",
        "a fact about the nets of this run",
        data.reached.size,
    )
    for id, text, most_allowed, bar, found in (
        ("exact.fitted", f"every training reaches the loss {goal} (those that do not)", 0.0, "ours: all",
         (data.reached == 0).sum()),
        ("exact.classes", "neither class loses its neurons (nets in which one does)", 0.0, "ours: none",
         (data.neurons == 0).sum()),
        ("exact.energy", "the fall of log L is the integral of |grad L|^2 / L (largest relative gap)", 0.02,
         "ours: 2%, four of the flow's tolerances of a step", data.energy_error.max()),
        ("exact.merge", "merging neurons changes f little (most, over its largest value)", 1e-4,
         "ours: a thousandth of the distance that counts as small", data.merge_error.max()),
        *((f"kkt.p{p:g}", f"p = {p:g}: every net is near a KKT direction (largest "
           + ("residual, Clarke corners at kinks)" if p == 1 else "1 - cos(theta, -grad L))"),
           0.02 if p == 1 else 1e-4, "ours: an angle of about a degree",
           data.kkt_residual.sel(p=p).max() if p == 1 else 1 - data.kkt_cosine.sel(p=p).min())
          for p in config.p),
    ):  # fmt: skip
        nets = n // len(config.p) if id.startswith("kkt") else n
        fact, text = Certain(float(found), why, nets), f"of these nets: {text}"
        yield judge(id, text, Expected(max=most_allowed), fact, bar=bar)
