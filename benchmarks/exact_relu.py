"""Exact radii of ReLU nets: l2, l1 and linf by branch and bound, against a mixed-integer program (SCIP).

W and x standard normal, b of variance 1/4, balanced signs and random sizes of v, labels the net's own. The
reference solves the same problem point by point, given a ball 1.2 times the radius, on few points, and
is extrapolated. The bars of the project: 2,000 radii of 10 neurons under 10 s, 200 of 24 under 20 s.
"""

import importlib.util
import math
import time
from collections.abc import Callable
from pathlib import Path

import torch

from tacit.certify.relu.radius import relu_radius
from tacit.nets import TwoLayerNet

# D, neurons, norm, points, points given to the reference
CASES = (
    (20, 10, 2.0, 2000, 10),
    (1000, 10, 2.0, 2000, 0),
    (20, 24, 2.0, 200, 0),
    (1000, 24, 2.0, 200, 0),
    (20, 10, math.inf, 100, 10),
    (20, 10, 1.0, 100, 10),
)
ORACLE = Path(__file__).parent.parent / "tests" / "certify" / "oracle.py"


def main() -> None:
    for D, h, norm, n, few in CASES:
        net, x, y = draw(D, h, n)
        relu_radius(net, x[:20], y[:20], norm=norm)  # warm up
        start = time.perf_counter()
        found = relu_radius(net, x, y, norm=norm)
        seconds = time.perf_counter() - start
        gap = ((found.upper - found.lower) / found.upper).nan_to_num(0.0).max()
        line = f"exact l{norm:g} radius, {h} neurons, D = {D}, {n} points: {seconds:.2f} s"
        line += f", widest interval {gap:.1e}"
        if few and ORACLE.exists() and importlib.util.find_spec("pyscipopt"):
            line += against_reference(net, x, y, found.upper[:few].tolist(), norm, seconds / n)
        print(line)


def draw(D: int, h: int, n: int) -> tuple[TwoLayerNet, torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    w, b, v, x = (
        torch.randn(*shape, generator=g, dtype=torch.float64)
        for shape in ((h, D), (h,), (h,), (n, D))
    )
    net = TwoLayerNet(w, v.abs() * (-1.0) ** torch.arange(h), b / 2)
    return net, x, torch.where(net(x) > 0, 1.0, -1.0).to(torch.float64)


def against_reference(
    net: TwoLayerNet,
    x: torch.Tensor,
    y: torch.Tensor,
    radii: list[float],
    norm: float,
    ours: float,
) -> str:
    """The ratio of the times a point, and the largest relative difference."""
    assert net.b is not None
    tensors = [t.numpy() for t in (net.w, net.v, net.b)]
    solve = reference()
    start = time.perf_counter()
    known = [(i, r) for i, r in enumerate(radii) if 0 < r < math.inf]
    theirs = [solve(*tensors, x[i].numpy(), float(y[i]), 1.2 * r, norm) for i, r in known]
    each = (time.perf_counter() - start) / len(known)
    apart = max(abs(a / r - 1) for a, (_, r) in zip(theirs, known, strict=True))
    return f", {each / ours:.0f}x a mixed-integer program (largest difference {apart:.1e})"


def reference() -> Callable[..., float]:
    """The oracle of the tests."""
    spec = importlib.util.spec_from_file_location("oracle", ORACLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    solve: Callable[..., float] = module.miqp_radius
    return solve


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
