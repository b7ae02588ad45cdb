"""dist(f, F) at D = 1000, K = 10: `function_distance` on merged and unmerged nets against the released search.

The reference is the loop of Algorithm 1 in the whole space with autograd on the net of 2,000 neurons, in float32:
10 batches of 1,000 points, 2,000 steps each, extrapolated from a few steps of one batch. Times are those of the
processor (one thread). The bar of the project: well below 0.3 s for a merged net, 5 s for an unmerged one.
"""

import math
import time

import torch

from tacit.data import min2024_mixture
from tacit.measure.distance.function import function_distance
from tacit.nets import TwoLayerNet, average_net, centre_net

D, K, K1, WIDE, TILT, SPREAD = 1000, 10, 6, 2000, 0.03, 1e-3
STEPS, TIMED_STEPS, BATCHES, BATCH = 2000, 5, 10, 1000


def main() -> None:
    """One line for each p."""
    for p in (1.0, 3.0):
        generator = torch.Generator().manual_seed(0)
        mixture = min2024_mixture(D, K, K1, 0.1, generator)
        F = average_net(mixture) if p == 1 else centre_net(mixture, p)
        few = noisy(F, TILT, generator)
        index = torch.arange(WIDE) % len(F.v)
        copies = TwoLayerNet(few.w[index], few.v[index] * len(F.v) / WIDE, p=p)
        many = noisy(copies, SPREAD, generator)
        function_distance(few, F)  # warm up
        merged, found = timed(few, F)
        unmerged, wide = timed(many, F)
        reference = released_seconds(many, F)
        print(
            f"dist, p = {p:g}: merged {merged:.3f} s, {WIDE} neurons {unmerged:.2f} s, "
            f"{reference / merged:.0f}x and {reference / unmerged:.0f}x the released search "
            f"({reference / 3600:.1f} h); upper / lower {found:.4f} and {wide:.4f}"
        )


def noisy(net: TwoLayerNet, size: float, generator: torch.Generator) -> TwoLayerNet:
    """Every neuron moved by a random vector of about `size` times its length."""
    drawn = torch.randn(net.w.shape, generator=generator, dtype=torch.float64)
    length = net.w.norm(dim=1, keepdim=True)
    return TwoLayerNet(net.w + size * length * drawn / math.sqrt(net.w.shape[1]), net.v, p=net.p)


def timed(f: TwoLayerNet, F: TwoLayerNet) -> tuple[float, float]:
    """Seconds, and upper / lower."""
    start = time.process_time()
    found = function_distance(f, F)
    return time.process_time() - start, found.upper / found.lower


def released_seconds(f: TwoLayerNet, F: TwoLayerNet) -> float:
    """What all batches and steps would take in the whole space."""
    nets = [TwoLayerNet(net.w.float(), net.v.float(), p=net.p) for net in (f, F)]
    x = torch.randn(BATCH, D, generator=torch.Generator().manual_seed(1))
    x = x / x.norm(dim=1, keepdim=True)
    start = time.process_time()
    for _ in range(TIMED_STEPS):
        x.requires_grad_()
        gap = nets[0](x) - nets[1](x)
        (gradient,) = torch.autograd.grad(gap.square().mean(), x)
        x = x.detach() + 0.01 * gradient / (gradient.norm(dim=1, keepdim=True) + 1e-7)
        x = x / x.norm(dim=1, keepdim=True)
    return (time.process_time() - start) / TIMED_STEPS * STEPS * BATCHES


if __name__ == "__main__":
    main()
