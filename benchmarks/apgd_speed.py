"""APGD on image-sized rows against its floor: the two products (rows x 784 x 500) that a step cannot do without.

A PolyReLU net with 500 random neurons on 300 points in [0, 1]^784, half of their pixels 0 as in drawings of
digits, labelled by the net itself. Cross-entropy, one random start, 100 steps; at p = 1 some break.
The floor is the time of those products for as many rows as the attack looked at, taken in the same run.
"""

import time
from unittest.mock import patch

import torch

from tacit.attack import apgd, cross_entropy
from tacit.attack.target import PolyReLUTarget
from tacit.nets import PolyReLUNet, poly_relu_start

POINTS, D, WIDTH, CLASSES, STEPS = 300, 784, 500, 10, 100
RADII = {"inf": (0.005, 0.01), "2": (0.1, 0.2), "1": (1.0, 2.0)}
ROWS_TIMED, TIMES = 512, 20


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(POINTS, D, generator=generator) * (
        torch.rand(POINTS, D, generator=generator) < 0.5
    )
    for p in (1.0, 3.0):
        ensemble = poly_relu_start(D, WIDTH, CLASSES, p, [generator], centre=x.mean(0))
        assert ensemble.b is not None
        net = PolyReLUNet(ensemble.w[0], ensemble.v[0], ensemble.b[0], p, ensemble.centre)
        y = net(x).argmax(1)
        for norm, radii in RADII.items():
            seconds, rows, robust = timed(net, x, y, norm, radii)
            floor = rows * products_seconds(net)
            print(
                f"APGD l{norm}, p = {p:g}: {1e6 * seconds / rows:.1f} us a point and step, "
                f"{seconds / floor:.2f}x its two products (robust {robust[0]:.3f}, {robust[1]:.3f})"
            )


def timed(
    net: PolyReLUNet, x: torch.Tensor, y: torch.Tensor, norm: str, radii: tuple[float, float]
) -> tuple[float, int, list[float]]:
    """CPU seconds of the attack, rows it looked at, robust accuracies."""
    seen, real = [0], PolyReLUTarget.with_pullback

    def counted(target: PolyReLUTarget, rows: torch.Tensor):  # type: ignore[no-untyped-def]
        seen[0] += len(rows)
        return real(target, rows)

    with patch.object(PolyReLUTarget, "with_pullback", counted):
        start = time.process_time()
        found = apgd(
            net,
            x,
            y,
            radii,
            norm=norm,
            box=(0.0, 1.0),
            loss=cross_entropy,
            starts=("random",),
            steps=STEPS,
        )
        seconds = time.process_time() - start
    return seconds, seen[0], found.robust_accuracy.tolist()


def products_seconds(net: PolyReLUNet) -> float:
    """CPU seconds of the two products for one row: the median of some, in between what else the machine does."""
    x, z = torch.rand(ROWS_TIMED, D), torch.rand(ROWS_TIMED, WIDTH)
    times = []
    for _ in range(TIMES):
        start = time.process_time()
        x @ net.w.T, z @ net.w
        times.append(time.process_time() - start)
    return sorted(times)[TIMES // 2] / ROWS_TIMED


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
