r"""Theorem 3.1: trained nets of any width generalise from n = k ln^2 d points; and what fewer points cost.

Theorem A.1 states it with numbers: but for a probability of 3 n^2 d^(-ln(d)/2) + n^2 e^(-d/16) + d^(1 - ln d)
over the data, the test error of every KKT point is at most 4 n d^(-ln(d)/2), under Assumption 2.2. Outside it
the law of Theorem 4.2's exhibit, ||eta z|| ~ N(sqrt(d/k), sigma^2), predicts the error Phi(-sqrt(d/k)/sigma).

**Fewer points.** n points leave the share (1 - 1/k)^n of the clusters unseen (coupon collector), and a net
knows nothing of those. What does it say there? All neurons are combinations of the training points, nearly
orthogonal to an unseen mean, so that the biases decide: with a seen clusters of the positive class and b of
the negative one,

    N(mu) ~ sum_+ v_j b_j - sum_- |v_j| |b_j| ~ (a - b)/d

(every seen cluster has the same sum of lambda_i v_j^2, about 1/d, and b_j = sum_i lambda_i y_i v_j phi_ij). So
for small sigma the net gives all unseen clusters the label of the class of which it saw more clusters. Where
both classes have k/2 clusters that is the wrong guess: more of the unseen ones belong to the *other* class, and
the error is

    max(unseen positive, unseen negative) / k,

half of the unseen mass or more. At sigma = 1 the noise of a test point outweighs the biases: nearer to half, with
half of the points besides at which every neuron is off (N = 0, an error by the theorem's y N <= 0).
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import torch
import xarray as xr
from scipy.stats import norm

from tacit.data import ClusterMixture, Samples
from tacit.lab import Bench, Claim, Expected, Outcome
from tacit.measure import kkt_cosine, upper_limit
from tacit.nets import TwoLayerNet
from tacit.papers._shared.assumptions import (
    assumption_line,
    check_assumption,
    missing_line,
    nice_probability,
)
from tacit.papers._shared.fits import listed
from tacit.papers.frei2023._shared.trained import (
    Setting,
    all_flowed,
    flowed,
    mixture_for,
    seen_by,
    start,
)
from tacit.papers.frei2023.thm3_1.figure import draw as draw
from tacit.papers.frei2023.thm3_1.settings import Generalise

WHERE = "Section 3, Theorem 3.1"
THEOREM = "Appendix A, Theorem A.1"
FEW_TESTS = 10_000  # where the error is large, fewer fresh points do
TINY = 1e-6  # the usual start
NARROW = 20  # neurons of the nets on fewer points
CONFIDENCE = 0.95
LITTLE = (
    0.02  # of all mass: less than half of one of 20 clusters, four standard errors of 10,000 points
)


def run(config: Generalise, bench: Bench) -> Outcome:
    """Nets of every width, start and loss; then fewer points."""
    settings, seeds = grid(config), bench.seeds(config.repeats)
    for sigma in config.sigma:
        for K in (config.K, config.clusters):
            mixture = mixture_for(setting_of(config, sigma, K), bench.generator("means"))
            bench.tell(assumption_line(mixture))
    pairs = [(i, setting, seed) for i, setting in enumerate(settings) for seed in seeds]
    cells = [
        bench.part(f"net{i}.{seed}", partial(one_net, setting, config, bench, seed))
        for i, setting, seed in bench.steps(pairs, "nets")
    ]
    rows = [cells[at : at + len(seeds)] for at in range(0, len(cells), len(seeds))]
    nets = xr.concat([xr.concat(row, "seed") for row in rows], "setting")
    nets = nets.assign_coords(
        seed=seeds, net=[named(s) for s in settings[: len(settings) // len(config.sigma)]]
    )
    counts = [(sigma, share) for sigma in config.sigma for share in (*config.share, 1.0)]
    found = [
        bench.part(f"few{sigma:g}.{share:g}", partial(few_points, sigma, share, config, bench))
        for sigma, share in bench.steps(counts, "fewer points")
    ]
    per = len(config.share) + 1
    few = xr.concat(
        [xr.concat(found[at : at + per], "n") for at in range(0, len(found), per)], "sigma"
    )
    few = few.assign_coords(sigma=list(config.sigma), n=points_of(config))
    data = xr.merge([nets, few])
    return Outcome(data, (*error_claims(data, config, bench), *few_claims(data, config, bench)))


def setting_of(config: Generalise, sigma: float, K: int | None = None) -> Setting:
    """The usual net at this noise."""
    K = K or config.K
    return Setting(config.D, K, K // 2, sigma, TINY, config.log_loss, config.h)


def grid(config: Generalise) -> list[Setting]:
    """Widths, starts and the logistic loss, one at a time, for each sigma."""
    out = []
    for sigma in config.sigma:
        usual = setting_of(config, sigma)
        out += [replace(usual, h=h) for h in config.widths]
        out += [replace(usual, init=init) for init in config.inits]
        out.append(replace(usual, loss="logistic"))
    return list(dict.fromkeys(out))


def named(setting: Setting) -> str:
    """What sets a net of the grid apart."""
    if setting.loss == "logistic":
        return "logistic"
    if setting.init == TINY:
        return f"h = {setting.h}"
    return f"init {setting.init:g}" if setting.init else "NTK-like"


def points_of(config: Generalise) -> list[int]:
    """The numbers of training points of the second part; k ln^2 d is the last."""
    full = setting_of(config, 1.0, config.clusters).n
    return [math.ceil(share * full) for share in (*config.share, 1.0)]


def one_net(setting: Setting, config: Generalise, bench: Bench, seed: int) -> xr.Dataset:
    """Test errors of one net, whether its loss fell below 1/n, and how near it is to a KKT point."""
    stream = bench.generator("data", *setting.named, seed=seed)
    mixture = mixture_for(setting, stream)
    samples = mixture.sample(setting.n, stream)
    bench.tell(missing_line(samples, mixture))
    begin = start(
        setting.D, setting.h, setting.init, bench.generator("start", setting.h, seed=seed)
    )
    net, log_loss = flowed(begin, samples, setting, bench.device)
    test = bench.generator("test", *setting.named, seed=seed)
    wrong = errors(*seen_by(net, mixture), config.tests, test)
    return xr.Dataset(
        {
            "errors": ((), wrong),
            "fitted": ((), log_loss < -math.log(setting.n)),
            "kkt_cosine": ((), float(kkt_cosine(net, samples.x, samples.y, setting.loss))),
            "neurons": ((), len(net.v)),
            "inside": ((), check_assumption(mixture).holds),
        }
    )


def errors(net: TwoLayerNet, mixture: ClusterMixture, n: int, generator: torch.Generator) -> int:
    """How many of n fresh points have y N(x) <= 0."""
    return sum(int((net(p.x) * p.y <= 0).sum()) for p in mixture.stream(n, generator))


def few_points(sigma: float, share: float, config: Generalise, bench: Bench) -> xr.Dataset:
    """Error, ties (N = 0) and unseen clusters of each class, by data set; all nets are trained together."""
    setting = replace(setting_of(config, sigma, config.clusters), h=NARROW, scout=False)
    n, tests = math.ceil(share * setting.n), min(config.tests, FEW_TESTS)
    stream = bench.generator("few", sigma, share)
    mixture = mixture_for(setting, stream)
    sets = [mixture.sample(n, stream) for _ in range(config.draws)]
    bench.tell(missing_line(sets[0], mixture))
    begin = start(setting.D, setting.h, setting.init, stream, (config.draws,))
    together = Samples(*(torch.stack([getattr(s, name) for s in sets]) for name in ("x", "y", "z")))
    rows = []
    for samples, (net, log_loss) in zip(
        sets, all_flowed(begin, together, setting, bench.device), strict=True
    ):
        unseen = torch.bincount(samples.z, minlength=mixture.K) == 0
        reduced, seen = seen_by(net, mixture)
        fresh = seen.sample(tests, stream)
        margin = reduced(fresh.x) * fresh.y
        shares = [float((margin <= 0).double().mean()), float((margin == 0).double().mean())]
        fits = log_loss < -math.log(n)
        by_class = [int(unseen[mixture.labels == side].sum()) / setting.K for side in (1, -1)]
        rows.append([*(shares if fits else (math.nan, math.nan)), *by_class])
    table = np.array(rows)
    return xr.Dataset(
        {
            "error": (("draw",), table[:, 0]),
            "ties": (("draw",), table[:, 1]),
            "unseen": (("draw", "class"), table[:, 2:]),
        },
        coords={"class": [1, -1]},
    )


def error_claims(data: xr.Dataset, config: Generalise, bench: Bench) -> Iterator[Claim]:
    """The test error on both sides of Assumption 2.2, pooled over all nets that fit."""
    settings = grid(config)
    tried = (
        f"widths {listed(config.widths)}, inits "
        f"{', '.join(f'{x:g}' if x else 'NTK-like' for x in config.inits)}, "
        f"exp and logistic loss, {config.repeats} seeds"
    )
    for sigma in config.sigma:
        mine = data.isel(setting=[i for i, s in enumerate(settings) if s.sigma == sigma])
        fitted = mine.fitted.values.astype(bool)
        wrong, n = int(mine.errors.values[fitted].sum()), int(fitted.sum()) * config.tests
        inside = bool(mine.inside.all())
        size = setting_of(config, sigma).n
        if inside:
            bound = 4 * size * config.D ** (-math.log(config.D) / 2)
            text = f"at most 4 n d^(-ln(d)/2) = {bound:.2g}"
        else:
            bound = float(norm.cdf(-math.sqrt(config.D / config.K) / sigma))
            text = f"at most Phi(-sqrt(d/k)/sigma) = {bound:.2g}, where the theorem is silent"
        limit = upper_limit(wrong, max(n, 1), CONFIDENCE)
        seen = (
            ""
            if limit <= bound
            else ", so that more points would be needed to refute a larger error"
        )
        large = mine.isel(setting=[s.init == 0 for s in settings if s.sigma == sigma])
        near = mine.isel(setting=[s.init > 0 for s in settings if s.sigma == sigma])
        far = (
            f"; NTK-like {float(large.kkt_cosine.min()):.2g}, far from a KKT point"
            if large.errors.size
            else ""
        )
        yield bench.judge(
            f"error.sigma{sigma:g}",
            f"the test error is {text} (d = {config.D}, k = {config.K}, n = {size}, sigma = {sigma:g}, "
            f"{'inside' if inside else 'outside'} Assumption 2.2; {tried}; {int(fitted.sum())} of "
            f"{fitted.size} "
            f"nets reached a loss below 1/n; all together, with the exact 95% upper limit {limit:.2g}"
            f"{seen}; cosine of theta and -grad L from {float(near.kkt_cosine.min()):.2g}{far})",
            WHERE,
            Expected(max=bound),
            wrong / max(n, 1),
            spread=limit,
            n=n,
        )
    size = setting_of(config, 1.0).n
    yield bench.judge(
        "vacuous",
        f"the theorem says something at this size: its probability is positive (d = {config.D}, n = "
        f"{size}; measured: "
        "1 - 3 n^2 d^(-ln(d)/2) - n^2 e^(-d/16) - d^(1 - ln d))",
        THEOREM,
        Expected(min=0.0),
        nice_probability(size, config.D),
        n=1,
    )


def predicted_error(unseen: np.ndarray) -> np.ndarray:
    """max(unseen positive, unseen negative) / k; classes last."""
    return np.asarray(unseen.max(-1))


def few_claims(data: xr.Dataset, config: Generalise, bench: Bench) -> Iterator[Claim]:
    """The coupon collector, and what unseen clusters cost."""
    n = np.array(points_of(config))
    seen_share = data.unseen.sum("class").mean(("sigma", "draw")).values
    law = (1 - 1 / config.clusters) ** n
    setup = f"d = {config.D}, k = {config.clusters}, n = {listed(n.tolist())}"
    draws = config.draws * len(config.sigma)
    # the variance of the number of empty cells, k (k-1) (1-2/k)^n + k q - (k q)^2
    k, q = config.clusters, law
    variance = np.clip(k * (k - 1) * (1 - 2 / k) ** n + k * q - (k * q) ** 2, 1e-12, None) / k**2
    scores = np.abs(seen_share - law)[:-1] / np.sqrt(variance / draws)[:-1]
    yield bench.judge(
        "coupons",
        "the share of clusters unseen is (1 - 1/k)^n (measured: the largest deviation in standard "
        f"errors; {setup})",
        "Section 3, remark on the sample complexity",
        Expected(max=float(norm.ppf(1 - 0.01 / (2 * len(scores))))),
        float(scores.max()),
        n=draws,
    )
    yield bench.judge(
        "enough",
        f"n = k ln^2 d points hold every cluster and leave no error (measured: the largest error; {setup})",
        WHERE,
        Expected(max=0.0),
        float(data.error.isel(n=-1).max()),
        n=draws,
    )
    for sigma in config.sigma:
        yield from unseen_claims(data.sel(sigma=sigma), sigma, setup, config, bench)


def unseen_claims(
    here: xr.Dataset, sigma: float, setup: str, config: Generalise, bench: Bench
) -> list[Claim]:
    """What unseen clusters cost at one noise level, against the prediction for it."""
    mass, error = here.unseen.sum("class").values, here.error.values
    some = (mass > 0) & np.isfinite(error)
    mixture = mixture_for(setting_of(config, sigma, config.clusters), bench.generator("means"))
    side = "inside" if check_assumption(mixture).holds else "outside"
    setup = f"{setup}, sigma = {sigma:g}, {side} Assumption 2.2"
    where, n = "Section 3, remark on the sample complexity", int(some.sum())
    total = float(mass[some].sum())
    if quiet(sigma, config.D):
        gap = np.abs(error - predicted_error(here.unseen.values))[some]
        law = bench.judge(
            f"unseen.sigma{sigma:g}",
            "the error is max(unseen positive, unseen negative)/k (measured: the mean distance from it over "
            "data sets "
            f"with unseen clusters; {setup})",
            where,
            Expected(max=LITTLE),
            float(gap.mean()) if n else math.nan,
            n=n,
        )
    else:
        coin = (error - here.ties.values / 2)[some].sum()
        most = float(predicted_error(here.unseen.values)[some].sum() / total) if n else math.nan
        law = bench.judge(
            f"unseen.sigma{sigma:g}",
            "the error lies between half of the unseen clusters' mass and max(unseen positive, unseen "
            "negative)/k, N = 0 "
            f"counted as half an error (measured: its ratio to the mass, all data sets together; {setup})",
            where,
            Expected(min=0.5, max=most, tolerance=LITTLE),
            float(coin / total) if n else math.nan,
            n=n,
        )
    return [
        law,
        bench.judge(
            f"half.sigma{sigma:g}",
            "no net does better on unseen clusters than a coin: the error over their mass is at least 1/2 "
            "(measured: "
            f"all data sets together; {setup})",
            where,
            Expected(min=0.5, tolerance=LITTLE),
            float(error[some].sum() / total) if n else math.nan,
            n=n,
        ),
    ]


def quiet(sigma: float, d: int) -> bool:
    """Whether <xi, mu> is below 1, so that biases decide where nothing was learned."""
    return sigma * math.sqrt(d) < 1
