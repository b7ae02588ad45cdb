"""Clean and adversarial training of the symmetric net against the same algorithm, plainly over all neurons.

allenzhu2020, Algorithms 1 and 2 at d = 200, m = 2000: 1,000 clean steps, 2,000 on FGM points (l2, radius .35),
fresh batches of 256. Both see the same batches, whose drawing is in both times. float32 for the times; in float64
the weights of the two are compared at the end. The bars of the project: 15 s on two quiet cores, 2.5x, 1e-9.
"""

import math
import time

import torch
from torch import Tensor

from tacit.data.sparse_coding import SparseCoding, sparse_coding, two_level_law, unitary_dictionary
from tacit.nets import SymmetricNet, symmetric_start
from tacit.train.purify.attackers import fgm_attacker
from tacit.train.purify.stages import Stage
from tacit.train.purify.training import train_symmetric

D, K, M, BATCH, RADIUS, SD = 200, 6, 2000, 256, 0.35, 0.003
COMMON = {"decay": 1e-4, "noise": 0.15, "growth": 0.23 / D, "ceiling": 0.5 / math.sqrt(K)}
CLEAN = [Stage(300, 0.2, **COMMON), Stage(700, 1.5, **COMMON)]
ROBUST = [Stage(2000, 0.7, **COMMON)]


def main() -> None:
    model = setting()
    ours, theirs = timed(model, torch.float32, sparse), timed(model, torch.float32, plain)
    one, other = timed(model, torch.float64, sparse), timed(model, torch.float64, plain)
    apart = float((one[1] - other[1]).abs().max())
    print(
        f"purification, d = {D}, m = {M}, 1000 + 2000 steps on {torch.get_num_threads()} threads: "
        f"{ours[0]:.1f} s, {theirs[0] / ours[0]:.2f}x the plain loop ({theirs[0]:.0f} s); in float64 "
        f"{other[0] / one[0]:.2f}x ({one[0]:.1f} s), weights at most {apart:.1e} apart"
    )


def setting() -> SparseCoding:
    generator = torch.Generator().manual_seed(0)
    dictionary = unitary_dictionary(D, D, generator)
    return sparse_coding(dictionary, two_level_law(D, K), K, sigma_x=0.4, margin=1.0)


def timed(model: SparseCoding, dtype: torch.dtype, train) -> tuple[float, Tensor]:  # type: ignore[no-untyped-def]
    """Seconds and the weights at the end."""
    bias = 1.8 * SD * math.sqrt(math.log(D))
    net = symmetric_start(D, M, SD, bias, torch.Generator().manual_seed(1), dtype=dtype)
    start = time.perf_counter()
    batches = model.stream(BATCH, torch.Generator().manual_seed(2), dtype=dtype)
    w = train(net, batches)
    return time.perf_counter() - start, w


def sparse(net: SymmetricNet, batches) -> Tensor:  # type: ignore[no-untyped-def]
    """As tacit trains."""
    clean = train_symmetric(net, batches, CLEAN).net
    return train_symmetric(clean, batches, ROBUST, attacker=fgm_attacker(RADIUS)).net.w


def plain(net: SymmetricNet, batches) -> Tensor:  # type: ignore[no-untyped-def]
    """As one would write it."""
    w, b = net.w.clone(), float(net.b[0])
    for stage in (*CLEAN, *ROBUST):
        for _ in range(stage.steps):
            x, y = next(batches)
            sigma = stage.noise * b
            if stage is ROBUST[0]:
                gradient = halves(x @ w.T, b, sigma)[1] @ w
                x = x - RADIUS * y[:, None] * gradient / gradient.norm(dim=1, keepdim=True)
            value, slope = halves(x @ w.T, b, sigma)
            pull = y * torch.sigmoid(-y * value.sum(1)) / len(y)
            decay = stage.decay * (w.norm(dim=1, keepdim=True) + 1)
            w = w + stage.eta * ((slope * pull[:, None]).T @ x - decay * w)
            b = stage.grown(b)
    return w


def halves(z: Tensor, b: float, sigma: float) -> tuple[Tensor, Tensor]:
    """Value and slope of E relu(z - b + rho) - E relu(-z - b + rho)."""
    up, down = (z - b) / sigma, (-z - b) / sigma
    above, below = chance(up), chance(down)
    value = sigma * (up * above + density(up) - down * below - density(down))
    return value, above + below


def chance(u: Tensor) -> Tensor:
    return 0.5 * torch.special.erfc(-u * math.sqrt(0.5))


def density(u: Tensor) -> Tensor:
    return torch.exp(-u * u / 2) / math.sqrt(2 * math.pi)


if __name__ == "__main__":
    main()
