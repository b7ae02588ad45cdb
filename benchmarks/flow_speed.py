"""Training from small weights: gradient flow as tacit follows it against the released SGD loop.

D = 1000, h = 2000, n = 20000, K = 10 (6 positive), alpha = .1, init sd 1e-7, exp loss: min2024, Section 5.1. The
loop: batches of 100, step .2, 401 epochs (80,200 steps), plain autograd in float32, extrapolated from STEPS real
steps. The flow: scouted, to the time at which the loop ends (t = 80,200 * .2). Both: the fastest on one or two
threads. The bar of the project: 300x (p = 1) and 1000x (p = 3).
"""

import time

import torch
from torch import Tensor

from tacit.data import min2024_mixture
from tacit.nets import TwoLayerNet
from tacit.train import Until, gradient_flow

D, H, N, K, K1, ALPHA, SD = 1000, 2000, 20000, 10, 6, 0.1, 1e-7
BATCH, STEP, EPOCHS, STEPS = 100, 0.2, 401, 300
SCOUT = 40
TIME = EPOCHS * N / BATCH * STEP


def main() -> None:
    mixture = min2024_mixture(D, K, K1, ALPHA, torch.Generator().manual_seed(1))
    s = mixture.sample(N, torch.Generator().manual_seed(2))
    x, y = s.x.float(), s.y.float()
    g = torch.Generator().manual_seed(3)
    w, v = SD * torch.randn(H, D, generator=g), SD * torch.randn(H, generator=g)
    for p in (1.0, 3.0):
        loop = min(loop_seconds(w, v, x, y, p, threads) for threads in (1, 2))
        seconds = []
        for threads in (1, 1, 1, 2, 2, 2):
            torch.set_num_threads(threads)
            start = time.perf_counter()
            flowed = gradient_flow(
                TwoLayerNet(w, v, p=p), x, y, until=Until(time=TIME), scout=SCOUT
            )
            seconds.append(time.perf_counter() - start)
        end = flowed.ended[0]
        torch.set_num_threads(1)
        print(
            f"p={p:g}: flow {min(seconds):.2f} s ({end.looks} looks, log-loss {end.log_loss:.2f}), loop "
            f"{loop:.0f} s extrapolated from {STEPS} steps: {loop / min(seconds):.0f}x"
        )


def loop_seconds(w: Tensor, v: Tensor, x: Tensor, y: Tensor, p: float, threads: int) -> float:
    """Seconds of all steps of the plain loop, from STEPS of them."""
    torch.set_num_threads(threads)
    w, v = w.clone().requires_grad_(), v.clone().requires_grad_()
    order = torch.randperm(N)
    start = time.perf_counter()
    for i in range(STEPS):
        batch = order[(i * BATCH) % N : (i * BATCH) % N + BATCH]
        z = torch.relu(x[batch] @ w.T)
        f = (z if p == 1 else z**p / w.norm(dim=1) ** (p - 1)) @ v
        torch.exp(-y[batch] * f).mean().backward()
        with torch.no_grad():
            for part in (w, v):
                assert part.grad is not None
                part -= STEP * part.grad
                part.grad = None
    return (time.perf_counter() - start) / STEPS * EPOCHS * N / BATCH


if __name__ == "__main__":
    main()
