"""What `frei2023.thm4.2` says of its measurements. Lengths are in units of sqrt(d/k) throughout."""

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from tacit.lab import Bench, Claim, Expected
from tacit.papers._shared.fits import exponent, farthest, listed
from tacit.papers.frei2023.thm4_2.settings import Flipped
from tacit.papers.frei2023.thm4_2.sweeps import every, places, sweep
from tacit.papers.frei2023.thm4_2.transfer import data_cost, predicted_length

WHERE = "Section 4, Theorem 4.2"
APPENDIX = "Appendix D, Lemmas D.6, D.7 and D.9"
NEAR = 0.03  # prefactors and medians
CONSTANT = 13.0  # Lemma D.9's chain with its numbers: (0.2/0.85 c + 12.3) sqrt(1.1), c <= 1/2


def claims(data: xr.Dataset, config: Flipped, bench: Bench) -> tuple[Claim, ...]:
    """All of them."""
    return (
        *growth_in_k(data, config, bench),
        *growth_in_d(data, config, bench),
        *other_sweeps(data, config, bench),
        *accuracy(data, config, bench),
        *proof_claims(data, config, bench),
        *transfer_claims(data, config, bench),
    )


def lengths(data: xr.Dataset, at: list[int], level: float = 0.5) -> np.ndarray:
    """The quantile over sqrt(d/k), settings by seeds."""
    return np.asarray(data.length.isel(setting=at).sel(level=level).values)


def kept(values: np.ndarray) -> np.ndarray:
    """Those of nets that fit: the others have NaN."""
    return values[~np.isnan(values)]


def side(data: xr.Dataset, at: list[int], names: list[int], what: str) -> str:
    """Which settings are inside Assumption 2.2."""
    inside = data.inside.isel(setting=at).all("seed").values
    mine = [name for name, holds in zip(names, inside, strict=True) if holds]
    if len(mine) == len(names):
        return "inside Assumption 2.2"
    return (
        f"inside Assumption 2.2 for {what} = {listed(mine)}" if mine else "outside Assumption 2.2"
    )


def growth_in_k(data: xr.Dataset, config: Flipped, bench: Bench) -> Iterator[Claim]:
    """Exponent -1/2 and prefactor 1 for each sigma; the 95% quantile by the Gaussian law."""
    K, at = list(config.K), places(config, "K")
    root = np.sqrt(config.D / np.array(K))[:, None]
    for s, sigma in enumerate(config.sigma):
        mine = at[s * len(K) : (s + 1) * len(K)]
        ratio = lengths(data, mine)
        slope = exponent(K, ratio * root)
        setup = (
            f"k = {listed(K)}, d = {config.D}, sigma = {sigma:g}, init {config.init:g}, "
            f"{config.repeats} seeds; {side(data, mine, K, 'k')}"
        )
        tail = lengths(data, mine, 0.95) / (1 + sigma * 1.644854 / root)
        yield bench.judge(
            f"exponent.k.sigma{sigma:g}",
            f"exponent of k in the median length along z that flips a test point ({setup})",
            WHERE,
            Expected(value=-0.5, tolerance=0.02),
            slope.value,
            spread=slope.spread,
            n=ratio.size,
        )
        yield bench.judge(
            f"prefactor.k.sigma{sigma:g}",
            "that median is sqrt(d/k) (measured: its ratio, the farthest from 1 of all k and seeds; "
            f"{setup})",
            WHERE,
            Expected(value=1.0, tolerance=NEAR),
            farthest(kept(ratio)),
            n=ratio.size,
        )
        yield bench.judge(
            f"law.k.sigma{sigma:g}",
            "the smallest eta that flips 95% of the points has length sqrt(d/k) + 1.645 sigma (measured: the "
            f"ratio, farthest from 1; {setup})",
            WHERE,
            Expected(value=1.0, tolerance=NEAR),
            farthest(kept(tail)),
            n=ratio.size,
        )


def growth_in_d(data: xr.Dataset, config: Flipped, bench: Bench) -> Iterator[Claim]:
    """Exponent 1/2 for each sigma; 1/4 with k = sqrt(d) random means."""
    D, at = list(config.dims), places(config, "D")
    for s, sigma in enumerate(config.sigma):
        mine = at[s * len(D) : (s + 1) * len(D)]
        found = lengths(data, mine) * np.sqrt(np.array(D) / config.few)[:, None]
        slope = exponent(D, found)
        yield bench.judge(
            f"exponent.d.sigma{sigma:g}",
            f"exponent of d in the median length along z (d = {listed(D)}, k = {config.few}, "
            f"sigma = {sigma:g}; {side(data, mine, D, 'd')})",
            WHERE,
            Expected(value=0.5, tolerance=0.02),
            slope.value,
            spread=slope.spread,
            n=found.size,
        )
    D, at = list(config.random), places(config, "random")
    units = np.array([setting.unit for setting in sweep(config, "random")])
    found = lengths(data, at) * units[:, None]
    slope = exponent(D, found)
    yield bench.judge(
        "example2",
        f"with k = sqrt(d) random means and sigma = 1 the median length grows like d^(1/4) (d = {listed(D)}; "
        f"{side(data, at, D, 'd')})",
        "Section 4, Example 2",
        Expected(value=0.25, tolerance=0.025),  # random means: ||u||^2/(kd) has sd sqrt(2/d)
        slope.value,
        spread=slope.spread,
        n=found.size,
    )


def other_sweeps(data: xr.Dataset, config: Flipped, bench: Bench) -> Iterator[Claim]:
    """Imbalance of the classes, and no noise at all."""
    at = places(config, "positive")
    ratio = lengths(data, at)
    c = np.array([min(K1, config.many - K1) / config.many for K1 in config.positive])
    setup = (
        f"{listed(config.positive)} of {config.many} clusters positive, d = {config.at}, sigma = "
        f"{min(config.sigma):g}, {side(data, at, list(config.positive), 'k1')}; "
        f"{int(np.isfinite(ratio).sum())} of {ratio.size} nets reached a loss below 1/n"
    )
    still = [i for i, setting in enumerate(every(config)) if setting.sigma == 0]
    yield bench.judge(
        "imbalance.bound",
        "the median length is at most sqrt(d/(c^2 k)), the theorem's order with constant 1 (measured: the "
        f"largest ratio; {setup})",
        WHERE,
        Expected(max=1.0),
        float(np.nanmax(ratio * c[:, None])),
        n=ratio.size,
    )
    yield bench.judge(
        "imbalance.flat",
        f"c plays no part: the median stays sqrt(d/k) (measured: the ratio, farthest from 1; {setup})",
        WHERE,
        Expected(value=1.0, tolerance=NEAR),
        farthest(kept(ratio)),
        n=ratio.size,
    )
    if still:
        ratio = lengths(data, still)
        yield bench.judge(
            "limit",
            "sigma -> 0, the points are the means themselves: the median length is sqrt(d/k) (k = "
            f"{config.few}, "
            f"d = {config.at}, sigma = 0; measured: the ratio, farthest from 1; outside Assumption 2.2 by "
            "sigma > 0 alone)",
            "Section 4, last remark",
            Expected(value=1.0, tolerance=NEAR),
            farthest(kept(ratio)),
            n=ratio.size,
        )


def accuracy(data: xr.Dataset, config: Flipped, bench: Bench) -> Iterator[Claim]:
    """That depth and scouting do not matter, that z is universal, and how near to the best attack it is."""
    for name, text in (
        ("depth", f"four times the log-loss of {config.log_loss:g} moves the median by at most 1%"),
        (
            "scout",
            "with the alignment phase scouted or followed on all data the medians agree to 1%",
        ),
    ):
        one, two = lengths(data, places(config, name))
        yield bench.judge(
            name,
            f"{text} (k = {config.few}, d = {config.at}, sigma = {min(config.sigma):g})",
            WHERE,
            Expected(max=0.01),
            float(np.abs(two / one - 1).max()),
            n=one.size,
        )
    K, at = len(config.K), places(config, "K")
    for s, sigma in enumerate(config.sigma):
        mine = data.ratio.isel(setting=at[s * K : (s + 1) * K]).values
        cosine = 1 / math.sqrt(1 + sigma**2 / math.log(config.D) ** 2)
        yield bench.judge(
            f"optimal.sigma{sigma:g}",
            "no perturbation is much shorter than z: the exact radius over the length along z is the "
            "cosine of u "
            f"and the net's gradient, 1/sqrt(1 + (sigma/ln d)^2) with equal multipliers (d = {config.D}, "
            f"sigma = {sigma:g}; measured: the "
            "median over points, farthest from it of all k and seeds)",
            WHERE,
            Expected(value=cosine, tolerance=NEAR),
            farthest(kept(mine), cosine),
            n=mine.size,
        )
    share = data.flipped.sel(by="95%").isel(setting=at).values
    yield bench.judge(
        "universal",
        "one z for all: at the eta that flips 95% of the points, those that smaller ones flip are flipped "
        "still (measured: the share of the points classified right that x - y z breaks, the least over k, "
        "sigma and seeds)",
        WHERE,
        Expected(min=0.95, tolerance=0.001),
        float(share.min()),
        n=share.size,
    )


def proof_claims(data: xr.Dataset, config: Flipped, bench: Bench) -> list[Claim]:
    """The proof's own eta in every setting inside the assumption, NTK-like starts included."""
    settings = every(config)
    inside = [i for i in range(len(settings)) if bool(data.inside[i].all())]
    if not inside:
        return []
    count = f"{len(inside)} settings inside Assumption 2.2, every start, {config.repeats} seeds"
    shares = data.flipped.isel(setting=inside)
    promised = [
        1 - 4 * settings[i].n * settings[i].D ** (-math.log(settings[i].D) / 2) for i in inside
    ]
    c = np.array([min(s.K1, s.K - s.K1) / s.K for s in (settings[i] for i in inside)])
    constant = data.proof.sel(lemma="D.7").isel(setting=inside).values * c[:, None]
    widest = max(inside, key=lambda i: (settings[i].K, settings[i].D))
    K, D = settings[widest].K, settings[widest].D
    over = float(data.proof.sel(lemma="D.7")[widest].max()) / math.sqrt(K)
    return [
        bench.judge(
            "proof.flips",
            f"eta_1 + eta_2 flips a share of at least 1 - 4 n d^(-ln(d)/2) (measured: the least; {count})",
            APPENDIX,
            Expected(min=max(promised)),
            float(shares.sel(by="D.7").min()),
            n=shares.sel(by="D.7").size * config.tests,
        ),
        bench.judge(
            "proof.activates",
            f"eta_1 of Lemma D.6 alone turns neurons on and flips nothing (measured: the largest share; {count})",
            APPENDIX,
            Expected(max=0.01),
            float(shares.sel(by="D.6").max()),
            n=shares.sel(by="D.6").size * config.tests,
        ),
        bench.judge(
            "proof.constant",
            "(eta_1 + eta_2)||u|| is at most 13 sqrt(d/(c^2 k)), the constant of Lemma D.9's chain "
            "(measured: the "
            f"largest ratio to sqrt(d/(c^2 k)); {count})",
            APPENDIX,
            Expected(max=CONSTANT),
            float(constant.max()),
            n=constant.size,
        ),
        bench.judge(
            "proof.small",
            f"the proof's z is shorter than sqrt(d) at k = {K}, d = {D} (measured: its length over sqrt(d); "
            "the theorem "
            "asks for c^2 k without bound)",
            APPENDIX,
            Expected(max=1.0),
            over,
            n=1,
            because="its length is near 9/c sqrt(d/k) and falls below sqrt(d) only for k > 81/c^2, 324 at c "
            "= 1/2; "
            f"measured {over:.3g} sqrt(d), where sqrt(2d) leads to another mean",
        ),
    ]


def transfer_claims(data: xr.Dataset, config: Flipped, bench: Bench) -> list[Claim]:
    """z on all nets; one net's data and learned direction on the others."""
    d, k = config.transfer, config.few
    covered = data.covered.values.astype(bool)
    names = ", ".join(data.target.values[covered])
    setup = f"d = {d}, k = {k}, sigma = 1, outside Assumption 2.2; nets: {names}"
    others = covered[:, None] & covered & ~np.eye(len(covered), dtype=bool)
    if not others.any():
        return []
    median = data.transfer_z.sel(quantile=0.5).values
    over = data.transfer.sel(quantile=0.5).values / median
    cost = data_cost(d, k)
    return [
        bench.judge(
            "transfer.z",
            f"one z of length sqrt(d/k) + 1.645 sigma = {predicted_length(d, k, 0.95):.3g} flips 95% of the "
            "points of "
            f"every net (measured: the share, farthest off; {setup})",
            WHERE,
            Expected(value=0.95, tolerance=0.03),
            farthest(data.transfer_share.values[covered], 0.95),
            n=int(covered.sum()),
        ),
        bench.judge(
            "transfer.data",
            "the class sum of one net's data flips the other nets at 1/cos times z's median length, "
            f"cos = 1/sqrt(1 + 2k/n) (measured: the ratio, farthest off; {setup})",
            WHERE,
            Expected(value=cost, tolerance=0.05),
            farthest(over[0][others], cost),
            n=int(others.sum()),
        ),
        bench.judge(
            "transfer.learned",
            "a universal perturbation learned on one net, in a ball of radius 2 sqrt(d/k), flips the other nets "
            "within twice z's median length, which asks for a cosine of about 1/2 with z; random directions have "
            f"1/sqrt(d) (measured: the largest ratio; {setup})",
            WHERE,
            Expected(max=2.0),
            float(over[1][others].max()),
            n=int(others.sum()),
        ),
    ]
