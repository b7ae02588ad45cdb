"""The claims of Figures 2 and 5: what the paper says or theory predicts, and what the trained nets are."""

import math
from collections.abc import Iterator

import xarray as xr

from tacit.base.estimate import Certain, Estimate, farthest, least, most
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.measure import mean_of, proportion
from tacit.papers._shared.fits import listed
from tacit.papers.min2024.fig2.settings import Conjecture

BEST = math.sqrt(0.5)
SHOWN = 0.1  # the captions' alpha in (b) to (d), and up to which radii are claimed
SMALL = "ours: a tenth for 'much less than 1', which is |F| at every centre"


def claims(data: xr.Dataset, config: Conjecture, bench: Bench) -> tuple[Claim, ...]:
    """What the paper says of the figure, by means over an alpha's nets; then how exact training was."""
    figure = "Appendix A.2, Figure 5" if config.K > 10 else "Section 5.1, Figure 2"
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
    """For each alpha (and end, if there are two) the mean over the nets; they are judged together."""
    rows = found.transpose(..., "seed").values.reshape(-1, found.sizes["seed"])
    return [mean_of(row, of=len(rows), over="nets of an alpha") for row in rows]


def distances(judge: Judge, data: xr.Dataset, p: float) -> Iterator[Claim]:
    """(a): small, and at p = 1 rising with alpha."""
    name = "F" if p == 1 else f"F^({p:g})"
    upper = data.distance.sel(end="upper", drop=True).sortby("alpha")
    mean = upper.mean("seed")
    text = f"dist(f, {name}) is much less than 1 at every alpha ({listed(map(float, upper.alpha))}; the largest)"
    why = "Conjecture 1 is for small alpha: "
    why += f"{float(mean[-1]):.2g} at alpha = {float(mean.alpha[-1]):g}, {float(mean[0]):.2g} at the smallest"
    yield judge(f"distance.p{p:g}", text, Expected(max=0.1), most(each_alpha(upper)), because=why)
    if p == 1 and len(upper) > 1:
        text = "dist(f, F) increases with alpha (that at the largest over that at the smallest)"
        rise = mean_of((upper[-1] / upper[0]).values, over="pairs of nets")
        yield judge("distance.rises", text, Expected(min=1.0), rise, bar="paper: increases")


def learned(judge: Judge, data: xr.Dataset, config: Conjecture, p: float) -> Iterator[Claim]:
    """(b) to (d): what the neurons learn."""
    what = "the two class averages" if p == 1 else f"the {config.K} centres"
    text = f"neurons learn only {what} (share of the lesser sign's mass within cosine .95)"
    share = least(each_alpha(data.within.min("sign")))
    yield judge(f"learned.p{p:g}", text, Expected(min=0.95), share, bar="ours: 95% of the mass")
    if p > 1:
        text = f"neurons learn each of {what} (the least mass of any, over an equal share)"
        bar = "ours: half of what F^(p) gives it"
        yield judge(f"all.p{p:g}", text, Expected(min=0.5), least(each_alpha(data.least)), bar=bar)


def broken(judge: Judge, data: xr.Dataset, config: Conjecture, p: float) -> Iterator[Claim]:
    """(e): critical radii, and robust accuracy halfway between 1/sqrt(K) and sqrt(2)/2, where alpha <= .1."""
    edge = 1 / math.sqrt(config.K)
    judge = judge.but(where=f"{judge.where} (e); Section 3, Remark 2")
    theory, name = (edge, "1/sqrt(K)") if p == 1 else (BEST, "sqrt(2)/2")
    text = f"p = {p:g}: the critical radius is {name}, alpha <= {SHOWN:g} (largest relative gap)"
    bar = "ours: 2%; noise of alpha = .1 moves a coordinate by 1% of 1/sqrt(10)"
    gap = farthest(each_alpha(data.critical / theory))
    yield judge(f"radius.p{p:g}", text, Expected(max=0.02), gap, bar=bar)
    middle = (edge + BEST) / 2
    kept = ((data.upper if p == 1 else data.lower) > middle).sum(("seed", "point")).values
    n = data.sizes["seed"] * data.sizes["point"]
    shares = [proportion(int(k), n, of=len(kept), over="points and nets") for k in kept]
    bar = "ours: 1 of 100; the radius is halfway between the two critical ones"
    if p == 1:
        text = f"an attack of radius {middle:.3g} breaks the ReLU net (robust accuracy)"
        yield judge("robust.p1", text, Expected(max=0.01), most(shares), bar=bar)
    else:
        text = f"nothing of radius {middle:.3g} breaks the net of p = {p:g} (certified accuracy)"
        yield judge(f"robust.p{p:g}", text, Expected(min=0.99), least(shares), bar=bar)
    if p == 1 and config.K > 10:
        text = "the ReLU net breaks earlier than at K = 10 (critical radius times sqrt(10))"
        bar = "paper: more vulnerable than at K = 10, where it is 1/sqrt(10)"
        ratio = most(each_alpha(data.critical * math.sqrt(10)))
        yield judge("earlier", text, Expected(max=1.0), ratio, bar=bar)


def exact(judge: Judge, data: xr.Dataset, config: Conjecture) -> Iterator[Claim]:
    """How far the training can be trusted. KKT (Lyu & Li 2020, Theorem 4.4): by the cosine for p > 2, by the
    residual at p = 1, which has kinks."""
    goal, why, n = f"exp({config.log_loss:g})", "counted on the nets of this run", data.reached.size
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
        yield judge(id, text, Expected(max=most_allowed), Certain(float(found), why, nets), bar=bar)
