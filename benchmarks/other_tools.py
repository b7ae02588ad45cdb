"""What other tools report on the same nets: `python -m benchmarks.other_tools PAGE` writes a page's table.

Three models in l2. The two nets of the papers have an exact radius, so the truth is known; on their data (two
classes, no box) no tool but ours finds it. On images in [0, 1] with ten classes the tools are at home. Every tool
is judged by one rule: a point is broken if its margin is at most 0, inside the ball and the box.
"""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import Tensor

from tacit.attack import apgd, minimal
from tacit.attack.others import OTHERS, Bounds, Logits, aside, judged
from tacit.certify import radius
from tacit.certify.crown.radius import crown_radius
from tacit.data import min2024_mixture
from tacit.nets import TwoLayerNet, average_net, centre_net

BEGIN, END = "<!-- table: python -m benchmarks.other_tools -->", "<!-- end of table -->"
POINTS, D, K, K1, ALPHA = 1000, 100, 10, 5, 0.1


@dataclass(frozen=True)
class Case:
    """A model with logits, its data, a radius in l2, and what is known to be true there."""

    title: str
    model: torch.nn.Module
    x: Tensor
    y: Tensor
    radius: float
    bounds: Bounds | None
    truth: str
    ours: Callable[[], float]


def net_case(title: str, build: Callable[..., TwoLayerNet], share: float) -> Case:
    """One of the papers' nets in li2025's units (norm sqrt(D)), at a radius beyond its critical one."""
    mixture = min2024_mixture(D, K, K1, ALPHA, torch.Generator().manual_seed(0))
    points = mixture.sample(POINTS, torch.Generator().manual_seed(1))
    x, net = points.x * math.sqrt(D), build(mixture)
    exact = radius(net, x, points.y).upper
    eps = float(exact.quantile(share)) * 1.01
    single = replace(net, w=net.w.float(), v=net.v.float(), b=None)
    truth = f"{float((exact > eps).double().mean()):.3f} (exact)"
    return Case(
        title,
        Logits(single),
        x.float(),
        (points.y > 0).long(),
        eps,
        None,
        truth,
        lambda: float((minimal(net, x, points.y).radius > eps).double().mean()),
    )


def digits_case() -> Case:
    """scikit-learn's digits, a small MLP."""
    data = load_digits()
    x, y = torch.tensor(data.data / 16).float(), torch.tensor(data.target)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(300):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x[POINTS - 203 :]), y[POINTS - 203 :]).backward()
        optimizer.step()
    model.eval()
    x, y, eps = x[: POINTS - 203], y[: POINTS - 203], 0.5
    certified = float((crown_radius(model, x, y, norm=2) >= eps).double().mean())
    return Case(
        "MLP on digits, 10 classes, box [0, 1]",
        model,
        x,
        y,
        eps,
        (0.0, 1.0),
        f"at least {certified:.3f} (certified)",
        lambda: 1 - float(apgd(model, x, y, [eps], norm=2, box=(0.0, 1.0)).broken.double().mean()),
    )


def rows() -> list[str]:
    """The table, a row for each tool and case."""
    lines = [
        "| model, radius | tool | robust accuracy reported | left ball or box | seconds |",
        "| --- | --- | --- | --- | --- |",
    ]
    cases = (
        net_case("F: two class averages, d = 100, no box", average_net, 1.0),
        net_case("F^(3): ten centres, d = 100, no box", lambda m: centre_net(m, 3.0), 0.99),
        digits_case(),
    )
    for case in cases:
        name = f"{case.title}, radius {case.radius:.3g}"
        lines.append(f"| {name} | the truth | {case.truth} | | |")
        start = time.perf_counter()
        ours = case.ours()
        lines.append(f"| | **tacit** | {ours:.3f} | 0 | {time.perf_counter() - start:.1f} |")
        for tool, attack in OTHERS.items():
            start = time.perf_counter()
            try:
                with aside():
                    attacked = attack(case.model, case.x, case.y, case.radius, case.bounds)
            except Exception as error:
                lines.append(f"| | {tool} | fails: {type(error).__name__} | | |")
                continue
            seconds = time.perf_counter() - start
            broken, left = judged(case.model, case.x, case.y, attacked, case.radius, case.bounds)
            accuracy, outside = 1 - float(broken.double().mean()), float(left.double().mean())
            lines.append(f"| | {tool} | {accuracy:.3f} | {outside:.3f} | {seconds:.1f} |")
    return lines


def main(page: str | None = None) -> None:
    table = rows()
    print("\n".join(table))
    if page is not None:
        before, rest = Path(page).read_text().split(BEGIN)
        after = rest.split(END)[1]
        Path(page).write_text("\n".join([before + BEGIN, *table, END + after]))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:2])
