"""PolyReLU certificates: how far the proved radius stays below the attack, on nets trained on clusters.

D = 1000, K = 10 (6 positive), 100 neurons trained on 4,000 points to log-loss -20 in the design's coordinates
(directions aligned first, then the balanced flow in loss-normalised time). The bar of the project: within .5% at
alpha = .1 and 2% at alpha = .3, l2.
"""

import math
import time

import torch

from tacit.certify.poly.radius import poly_radius
from tacit.data import Samples, min2024_mixture
from tacit.nets import TwoLayerNet

D, K, K1, NEURONS, TRAINED, POINTS, LOG_LOSS = 1000, 10, 6, 100, 4000, 400, -20.0


def main() -> None:
    for alpha in (0.1, 0.3):
        mixture = min2024_mixture(D, K, K1, alpha, torch.Generator().manual_seed(0))
        seen = mixture.sample(TRAINED, torch.Generator().manual_seed(1))
        fresh = mixture.sample(POINTS, torch.Generator().manual_seed(2))
        for p in (3.0, 4.0):
            net = train(seen, p)
            start = time.process_time()
            found = poly_radius(net, fresh.x, fresh.y)
            seconds = time.process_time() - start
            gap = (1 - found.lower / found.upper)[found.upper > 0]
            print(
                f"certificate of a trained p={p:g} net, alpha={alpha}: gap to the attack median "
                f"{gap.median():.1e}, 99% {gap.quantile(0.99):.1e}, max {gap.max():.1e} "
                f"({POINTS} points, radius {found.upper.median():.4f}, {seconds:.1f} s)"
            )


def train(points: Samples, p: float) -> TwoLayerNet:
    """A balanced net of NEURONS neurons from small weights: alignment, then the flow to LOG_LOSS."""
    generator = torch.Generator().manual_seed(3)
    x, y = points.x, points.y
    u = torch.randn(NEURONS, x.shape[1], generator=generator, dtype=torch.float64)
    u = u / u.norm(dim=1, keepdim=True)
    sign = torch.where(torch.arange(NEURONS) % 2 == 0, 1.0, -1.0).double()
    mass = 1e-3 * torch.rand(NEURONS, generator=generator, dtype=torch.float64)
    for _ in range(60):  # while masses are small directions climb G; the speed does not matter
        pull = ((u @ x.T).clamp_min(0) ** (p - 1) * (y / len(y))) @ x * sign.unsqueeze(1)
        u = pull / pull.norm(dim=1, keepdim=True)
    while True:
        z = (u @ x.T).clamp_min(0)
        slope = z ** (p - 1)
        margin = y * ((mass * sign) @ (z * slope))
        if torch.logsumexp(-margin, 0) - math.log(len(y)) < LOG_LOSS:
            return TwoLayerNet(u * mass.sqrt().unsqueeze(1), sign * mass.sqrt(), p=p)
        weight = torch.softmax(-margin, 0) * y
        growth = sign * ((z * slope) @ weight)
        turn = p * (slope * weight) @ x * sign.unsqueeze(1)
        turn = turn - (turn * u).sum(1, keepdim=True) * u
        fastest = torch.stack(
            [
                2 * growth.abs().max() / 0.3,
                turn.norm(dim=1).max() / 0.1,
                (mass @ growth.abs()) / 0.5,
            ]
        )
        step = 1 / fastest.max()
        mass = mass * torch.exp(2 * growth * step)
        u = u + step * turn
        u = u / u.norm(dim=1, keepdim=True)


if __name__ == "__main__":
    main()
