"""Proposition 4.8: f_j = relu(<mu_j + sum_{J_s} mu_l, x>) has perfect accuracy and radius 2 sqrt(d/(k+6)).

At a centre mu_i the own logit is 2d, those of its class d, the others 0. To break it, own logits must
fall to the level of an opposite one: the gradient of f_i - f_j is mu_i + S_own - mu_j - S_opp, of
squared length (k + 6) d, so the plane f_i = f_j is 2d / sqrt((k+6) d) away, and ln k in the log-sum-exp
changes that by less than ln(k) / (2d). The order is that of sqrt(d/k), as the proposition says.

Its proof (Theorem D.4) moves by rho = 3 (1+c) / k * (S+ - S-), of length 3 (1+c) sqrt(d/k), where c >= 1
is the imbalance of Assumption 3.3. For equal classes that is 6 sqrt(d/k): shorter than sqrt(d) only for
k > 36. Along the same direction 2 sqrt(k d) / (k + 2) is enough at a centre.
"""

import math
from functools import partial

import numpy as np
import torch
import xarray as xr

from tacit.attack import first_crossing
from tacit.certify import radius
from tacit.data import ClusterMixture, Samples, cluster_mixture, orthogonal_centres
from tacit.lab import Bench, Claim, Expected, Outcome, judge
from tacit.measure import critical_radius, proportion
from tacit.nets import MultiClassNet, linear_rule, prop48_net
from tacit.papers._shared.panels import rows
from tacit.papers.li2025.prop4_8.figure import draw as draw
from tacit.papers.li2025.prop4_8.settings import MultiClass

WHERE = "Section 4.2, Proposition 4.8"
PROOF = "Appendix D.3, proof of Theorem D.4"
C = 0.5  # the constant at which exp(-C d) is judged; the proposition leaves it unnamed
RADII = 171


def run(config: MultiClass, bench: Bench) -> Outcome:
    """Accuracy, cross-entropy, radius interval and the proof's perturbation, by K."""
    found = [
        bench.part(f"K{K}", partial(one_K, K, config, bench)) for K in bench.steps(config.K, "K")
    ]
    data = xr.concat(found, "K").assign_coords(K=list(config.K))
    claims = [
        *accuracy_claims(data, config, bench),
        *radius_claims(data, config, bench),
        *proof_claims(data, config, bench),
    ]
    return Outcome(data, tuple(claims))


def spanned(K: int, config: MultiClass, sigma: float) -> ClusterMixture:
    """Orthogonal centres of norm sqrt(d) in the K coordinates of their span: exact in law."""
    return cluster_mixture(orthogonal_centres(K, K, math.sqrt(config.D)), K // 2, sigma)


def one_K(K: int, config: MultiClass, bench: Bench) -> xr.Dataset:
    """All that is measured at one K."""
    root = math.sqrt(config.D)
    mixture = spanned(K, config, config.sigma)
    net = prop48_net(mixture)
    clean = [
        clean_counts(net, points, step_of_proof(mixture, points.y))
        for points in mixture.stream(config.n, bench.generator("clean", K))
    ]
    points = mixture.sample(config.attacked, bench.generator("attacked", K))
    radii = radius(net, points.x, points.y)
    ends = critical_radius(radii.lower), critical_radius(radii.upper)
    middle = critical_radius(radii.middle)
    at_centres = radius(net, mixture.centres, mixture.labels)
    along = first_crossing(net, points.x, points.y, step_of_proof(mixture, points.y))
    at_centre = step_of_proof(mixture, mixture.labels)
    centre_along = first_crossing(net, mixture.centres, mixture.labels, at_centre)
    levels = np.linspace(0, 0.85, RADII)
    return xr.Dataset(
        {
            "correct": ((), sum(part[0] for part in clean)),
            "flipped": ((), sum(part[1] for part in clean)),
            "log_loss": (
                (),
                float(np.logaddexp.reduce([part[2] for part in clean]) - math.log(config.n)),
            ),
            "median": ("end", np.array([middle.value, ends[0].low, ends[1].high]) / root),
            "centre": (
                "side",
                torch.stack([at_centres.lower[0], at_centres.upper[0]]).numpy() / root,
            ),
            "kept": (
                ("side", "radius"),
                np.array(
                    [
                        [int((r > e * root).sum()) for e in levels]
                        for r in (radii.lower, radii.upper)
                    ]
                ),
            ),
            "proof_length": ((), float(at_centre[0].norm()) / root),
            "along": ("end", rows([critical_radius(along)])[:, 0] / root),
            "centre_along": ((), float(centre_along.max()) / root),
        },
        coords={"end": ["median", "low", "high"], "side": ["lower", "upper"], "radius": levels},
    )


def step_of_proof(mixture: ClusterMixture, y: torch.Tensor) -> torch.Tensor:
    """-y rho, rho = 3 (1+c) / k (S+ - S-), c the ratio of the larger class to the smaller one."""
    c = max(mixture.K1, mixture.K - mixture.K1) / min(mixture.K1, mixture.K - mixture.K1)
    return -3 * (1 + c) / mixture.K * y.unsqueeze(1) * linear_rule(mixture).u


def clean_counts(net: MultiClassNet, points: Samples, step: torch.Tensor) -> tuple[int, int, float]:
    """Points classified right, points that `step` breaks, and ln of the summed cross-entropy.

    The cross-entropy of the subclass labels would underflow as a number: with
    a = LSE_{j != z}(f_j) - f_z it is ln(1 + e^a), and for a < -30 its logarithm is a.
    """
    logits, z = net.logits(points.x), points.z.unsqueeze(1)
    others = logits.scatter(1, z, -torch.inf)
    a = torch.logsumexp(others, 1) - logits.gather(1, z).squeeze(1)
    log_loss = torch.where(a < -30, a, torch.nn.functional.softplus(a).log())
    correct = int((net(points.x) * points.y > 0).sum())
    flipped = int((net(points.x + step) * points.y <= 0).sum())
    return correct, flipped, float(torch.logsumexp(log_loss, 0))


def accuracy_claims(data: xr.Dataset, config: MultiClass, bench: Bench) -> list[Claim]:
    """Clean accuracy and cross-entropy at the K where they are worst."""
    clean = proportion(int(data.correct.min()), config.n)
    return [
        bench.judge(
            "accuracy",
            f"clean accuracy is nearly 1 (measured: the least over k = {listed(config)})",
            WHERE,
            Expected(min=0.99),
            clean.value,
            spread=clean.spread,
            n=config.n,
        ),
        bench.judge(
            "loss",
            "the cross-entropy of the subclass labels is below exp(-C d), C = 1/2 (measured: the largest C)",
            WHERE,
            Expected(min=C),
            float(-data.log_loss.max()) / config.D,
            n=config.n,
        ),
    ]


def radius_claims(data: xr.Dataset, config: MultiClass, bench: Bench) -> list[Claim]:
    """The interval of the radius against 2 sqrt(d/(k+6)), with noise and at the centres; its order."""
    K = np.array(config.K)
    theory = 2 / np.sqrt(K + 6)
    noisy = data["median"].transpose("end", "K").values / theory
    worst = int(np.abs(noisy[0] - 1).argmax())
    exact = data.centre.transpose("side", "K").values / theory
    off = exact.flat[np.abs(exact - 1).argmax()]
    order = data["median"].sel(end="high").values * np.sqrt(K)
    return [
        bench.judge(
            "radius",
            f"critical radius over 2 sqrt(d/(k+6)), at the k farthest off of {listed(config)}",
            WHERE,
            Expected(value=1.0, tolerance=0.03),
            float(noisy[0, worst]),
            spread=float(noisy[2, worst] - noisy[1, worst]) / 2,
            n=config.attacked,
            because="the largest noise among the k/2 opposite centres shortens the way",
        ),
        judge(
            "radius.centres",
            "the same at the centres themselves, both ends of the interval (the farthest off)",
            WHERE,
            Expected(value=1.0, tolerance=0.01),
            float(off),
            n=int(K.sum()),
            smoke=False,
        ),
        bench.judge(
            "order",
            "the radius is of the order sqrt(d/k): at most 2 sqrt(d/k) (measured: the largest ratio)",
            WHERE,
            Expected(max=2.0),
            float(order.max()),
            n=config.attacked,
        ),
    ]


def proof_claims(data: xr.Dataset, config: MultiClass, bench: Bench) -> list[Claim]:
    """What the proof's perturbation does, and how long it is where the paper's experiments are."""
    K = np.array(config.K)
    flipped = proportion(int(data.flipped.min()), config.n)
    shown = 10 if 10 in config.K else config.K[0]
    length = float(data.proof_length.sel(K=shown))
    along = data.centre_along.values * (K + 2) / (2 * np.sqrt(K))
    return [
        bench.judge(
            "proof.flips",
            "the proof's rho = 3(1+c)/k (S+ - S-) flips nearly every sample (measured: the share)",
            PROOF,
            Expected(min=0.99),
            flipped.value,
            spread=flipped.spread,
            n=config.n,
        ),
        judge(
            "proof.length",
            f"the proof's rho is shorter than the centres' norm: ||rho||/sqrt(d) at k = {shown}",
            PROOF,
            Expected(max=1.0),
            length,
            n=1,
            smoke=False,
            because=f"3(1+c) sqrt(d/k) = {length:.3g} sqrt(d) at k = {shown}, against sqrt(2d) between "
            "two centres; with c = 1 it is below sqrt(d) only for k > 36",
        ),
        judge(
            "proof.direction",
            "along the proof's direction 2 sqrt(kd)/(k+2) is enough at a centre (measured: the ratio "
            "farthest off)",
            PROOF,
            Expected(value=1.0, tolerance=0.01),
            float(along[np.abs(along - 1).argmax()]),
            n=int(K.sum()),
            smoke=False,
        ),
    ]


def listed(config: MultiClass) -> str:
    """The values of K in words."""
    return ", ".join(map(str, config.K))
