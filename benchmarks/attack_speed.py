"""Minimal-norm attack on 2,000 neurons in 10 groups, D = 1000, p = 3: 20,000 points, 10 radii, against plain PGD.

Each neuron is its centre plus noise of relative size 1e-6, with a random mass. Ours: merge and turn to the
span, one shortest perturbation a point, each verified on the given net; the robust accuracies at all radii
are read off. The reference: zero-start PGD of 2,000 normalised steps for each radius in the full dimension,
with closed-form gradients, timed for few steps on few points and extrapolated; its robust accuracy (broken
at any step) is taken on 500 points in the span of the merged net, where its path is the same up to merging.
float32 points and net.
"""

import resource
import time

import torch

from tacit.attack.shortest.minimal import minimal
from tacit.attack.shortest.reduce import reduce_net
from tacit.attack.target import TwoLayerTarget
from tacit.data import ClusterMixture, min2024_mixture
from tacit.nets import TwoLayerNet

POINTS, D, K, K1, ALPHA, NEURONS, P = 20_000, 1000, 10, 6, 0.1, 2000, 3.0
RADII = [0.1 * k for k in range(1, 11)]
PGD_STEPS, TIMED_STEPS, TIMED_POINTS, JUDGED_POINTS = 2000, 5, 500, 500


def main() -> None:
    mixture = min2024_mixture(D, K, K1, ALPHA, torch.Generator().manual_seed(0))
    net = grouped_net(mixture, torch.Generator().manual_seed(1))
    x, y = points(mixture, torch.Generator().manual_seed(2))
    minimal(net, x[:100], y[:100])  # warm up
    start, busy = time.perf_counter(), time.process_time()
    radius = minimal(net, x, y).radius
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    robust = [float((radius > r).double().mean()) for r in RADII]
    each = pgd_step_seconds(net, x[:TIMED_POINTS], y[:TIMED_POINTS])
    plain = each * (POINTS / TIMED_POINTS) * PGD_STEPS * len(RADII)
    theirs = [pgd_robust(net, x[:JUDGED_POINTS], y[:JUDGED_POINTS], r) for r in RADII]
    ours = [float((radius[:JUDGED_POINTS] > r).double().mean()) for r in RADII]
    lower = all(a <= b for a, b in zip(ours, theirs, strict=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"minimal norm, {NEURONS} neurons in {K} groups, {POINTS} points, {len(RADII)} radii: "
        f"{seconds:.2f} s ({busy:.2f} s CPU), "
        f"{plain / seconds:.0f}x plain PGD-{PGD_STEPS} (extrapolated {plain / 3600:.0f} h), "
        f"peak memory {peak:.2f} GiB"
    )
    print(
        "  robust accuracy at "
        + ", ".join(f"{r:.1f}: {a:.4f}" for r, a in zip(RADII, robust, strict=True))
    )
    print(
        f"  on {JUDGED_POINTS} points ours / PGD's: "
        + ", ".join(f"{a:.3f}/{b:.3f}" for a, b in zip(ours, theirs, strict=True))
        + (" (never higher)" if lower else " (HIGHER somewhere)")
    )


def grouped_net(mixture: ClusterMixture, generator: torch.Generator) -> TwoLayerNet:
    """NEURONS neurons, each its centre plus 1e-6 relative noise, at random scales; v = y_k times another."""
    k = torch.arange(NEURONS) % K
    noise = torch.randn(NEURONS, D, generator=generator, dtype=torch.float64)
    w = mixture.centres[k] + 1e-6 * noise / noise.norm(dim=1, keepdim=True)
    scale = torch.rand(2, NEURONS, generator=generator, dtype=torch.float64) + 0.1
    return TwoLayerNet(
        (scale[0].unsqueeze(1) * w).float(), (mixture.labels[k] * scale[1]).float(), p=P
    )


def points(
    mixture: ClusterMixture, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """POINTS samples in float32, drawn in parts: a float64 copy of all of them is never held."""
    x, y = torch.empty(POINTS, D), torch.empty(POINTS)
    for i, part in enumerate(mixture.stream(POINTS, generator, 2000)):
        x[2000 * i : 2000 * (i + 1)], y[2000 * i : 2000 * (i + 1)] = part.x, part.y
    return x, y


def pgd_step_seconds(net: TwoLayerNet, x: torch.Tensor, y: torch.Tensor) -> float:
    """One step in the full dimension, the best of a few."""
    delta = torch.zeros_like(x)
    times = []
    for _ in range(TIMED_STEPS):
        start = time.perf_counter()
        delta = pgd_step(net, x, y, delta, 1.0)
        times.append(time.perf_counter() - start)
    return min(times)


def pgd_step(
    net: TwoLayerNet, x: torch.Tensor, y: torch.Tensor, delta: torch.Tensor, radius: float
) -> torch.Tensor:
    """A normalised step of 2.5 radius / steps down y f, projected on the ball."""
    _, pullback = TwoLayerTarget(net).with_pullback(x + delta)
    g = pullback(y)
    delta = delta - 2.5 * radius / PGD_STEPS * g / g.norm(dim=1, keepdim=True).clamp_min(1e-30)
    return delta * (radius / delta.norm(dim=1, keepdim=True).clamp_min(radius))


def pgd_robust(net: TwoLayerNet, x: torch.Tensor, y: torch.Tensor, radius: float) -> float:
    """The share that PGD leaves unbroken; in the span of the merged net, where its path is the same to 1e-6."""
    reduced = reduce_net(net)
    low, label = x.double() @ reduced.axes, y.double()
    delta = torch.zeros_like(low)
    unbroken = label * reduced.net(low) > 0
    for _ in range(PGD_STEPS):
        delta = pgd_step(reduced.net, low, label, delta, radius)
        unbroken &= label * reduced.net(low + delta) > 0
    return float(unbroken.double().mean())


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
