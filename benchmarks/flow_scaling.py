"""The cost of the flow grows linearly in the points, the dimension and the neurons that are left.

Seconds of one look at the data (what a step costs), over a decade of n, of D and of the number of neurons; and of
a whole scouted training over n. The exponent is the slope of log time against log size.
"""

import math
import time

import torch

from tacit.data import min2024_mixture
from tacit.nets import TwoLayerNet
from tacit.train import Until, gradient_flow
from tacit.train.flow.checks import checked_points
from tacit.train.flow.field import field_at
from tacit.train.flow.neurons import neurons_of

N, D, NEURONS = (4000, 8000, 16000, 40000), (200, 400, 800, 2000), (10, 20, 40, 100)


def main() -> None:
    torch.set_num_threads(1)
    report("n", N, [look(n, 500, 20) for n in N])
    report("D", D, [look(8000, d, 20) for d in D])
    report("neurons", NEURONS, [look(8000, 500, k) for k in NEURONS])
    report("n, whole training at p = 3", N, [training(n) for n in N])


def report(name: str, sizes: tuple[int, ...], seconds: list[float]) -> None:
    logs = torch.tensor([[math.log(s), 1.0] for s in sizes])
    values = torch.tensor([math.log(t) for t in seconds]).unsqueeze(1)
    slope = float(torch.linalg.lstsq(logs, values).solution[0])
    times = ", ".join(f"{size}: {1e3 * t:.1f} ms" for size, t in zip(sizes, seconds, strict=True))
    print(f"cost over {name}: exponent {slope:.2f} ({times})")


def look(n: int, d: int, k: int) -> float:
    """Seconds of one look: the best of several."""
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(n, d, generator=g), torch.randn(n, generator=g).sign()
    points = checked_points(x, y, None, "exp", 1, d)
    neurons = neurons_of(torch.randn(1, k, d, generator=g), torch.randn(1, k, generator=g))
    best = math.inf
    for _ in range(12):
        start = time.perf_counter()
        field_at(neurons, points, 3.0)
        best = min(best, time.perf_counter() - start)
    return best


def training(n: int) -> float:
    """Seconds of a scouted training of 500 neurons at D = 500."""
    mixture = min2024_mixture(500, 10, 6, 0.1, torch.Generator().manual_seed(1))
    s = mixture.sample(n, torch.Generator().manual_seed(2))
    g = torch.Generator().manual_seed(3)
    net = TwoLayerNet(
        1e-7 * torch.randn(500, 500, generator=g), 1e-7 * torch.randn(500, generator=g), p=3.0
    )
    start = time.perf_counter()
    gradient_flow(net, s.x.float(), s.y.float(), until=Until(log_loss=-11.0), scout=60)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
