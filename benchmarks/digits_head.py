"""PolyReLUClassifier against scikit-learn's MLPClassifier, width 500, on digits: accuracy, l2 radius, fit time.

Five splits, 60/40, pixels in [0, 1]. The radius is the length of the shortest perturbation that
`tacit.attack.minimal` finds, no box, 0 for a point that is wrong as it is; its median over 200 test points. Times
are medians of five fits each, in turn, one thread.
"""

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor, nn

from tacit.attack import minimal
from tacit.estimator import PolyReLUClassifier

SPLITS = 5
ATTACKED = 200
REPEATS = 5
TABLE_SPLITS, TABLE_ATTACKED = 2, 100
SUBCLASSES = 3

Split = tuple[Any, Any, Any, Any]
Scores = Callable[[Tensor], Tensor]


def split(seed: int) -> Split:
    """x and y to train on, x and y to test on."""
    x, y = load_digits(return_X_y=True)
    a, b, ya, yb = train_test_split(x / 16, y, test_size=0.4, stratify=y, random_state=seed)
    return a, ya, b, yb


def module_of(mlp: MLPClassifier) -> nn.Module:
    """The MLP's own weights as a torch module."""
    layers: list[nn.Module] = []
    for weight, bias in zip(mlp.coefs_, mlp.intercepts_, strict=True):
        layer = nn.Linear(len(weight), len(bias), dtype=torch.float64)
        layer.load_state_dict({"weight": torch.tensor(weight.T), "bias": torch.tensor(bias)})
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval()


def mlp(seed: int) -> MLPClassifier:
    return MLPClassifier((500,), random_state=seed)


def measured(model: Any, scores: Scores, parts: Split, points: int) -> tuple[float, float]:
    """Accuracy on the test part, and the median radius of its first points."""
    _, _, x, y = parts
    found = minimal(scores, torch.tensor(x[:points]), torch.tensor(y[:points]))
    return float(model.score(x, y)), float(found.radius.median())


def ours(parts: Split, seed: int, points: int, **settings: Any) -> tuple[float, float]:
    model = PolyReLUClassifier(random_state=seed, **settings).fit(parts[0], parts[1])
    plain = settings.get("supervision", "labels") == "labels"
    return measured(model, model.net_ if plain else model.to_module(), parts, points)


def theirs(parts: Split, seed: int, points: int) -> tuple[float, float]:
    model = mlp(seed).fit(parts[0], parts[1])
    return measured(model, module_of(model), parts, points)


def seconds(make: Callable[[], Any], parts: Split) -> tuple[float, float]:
    """CPU and wall time of one fit."""
    model, cpu, wall = make(), time.process_time(), time.perf_counter()
    model.fit(parts[0], parts[1])
    return time.process_time() - cpu, time.perf_counter() - wall


def bars() -> float:
    """The two bars of accuracy and radius, on all splits; the MLP's mean radius."""
    rows = []
    for seed in range(SPLITS):
        parts = split(seed)
        rows.append(
            [
                theirs(parts, seed, ATTACKED),
                ours(parts, seed, ATTACKED),
                ours(parts, seed, ATTACKED, p=5),
            ]
        )
    accuracy, radius = np.moveaxis(np.array(rows), 2, 0)
    print(f"digits, {SPLITS} splits: mean accuracy and median l2 radius, width 500")
    for i, name in enumerate(("MLPClassifier", "PolyReLU p=3", "PolyReLU p=5")):
        ratio = (radius[:, i] / radius[:, 0]).tolist()
        mean, gain = accuracy[:, i].mean(), (accuracy[:, i] - accuracy[:, 0]).mean()
        print(
            f"  {name:14} accuracy {mean:.4f} ({gain:+.4f}), radius {radius[:, i].mean():.3f}, "
            f"{np.mean(ratio):.2f}x (splits {min(ratio):.2f} to {max(ratio):.2f})"
        )
    return float(radius[:, 0].mean())


def times() -> None:
    """Fits in turn, in float64 as the data are and in float32."""
    parts = split(0)
    for kind in (np.float64, np.float32):
        cast = (parts[0].astype(kind), *parts[1:])
        fits = {
            "MLPClassifier": lambda: mlp(0),
            "PolyReLU p=3": lambda: PolyReLUClassifier(random_state=0),
        }
        took: dict[str, list[tuple[float, float]]] = {name: [] for name in fits}
        for _ in range(REPEATS):
            for name, make in fits.items():
                took[name].append(seconds(make, cast))
        middle = {
            name: [statistics.median(column) for column in zip(*rows, strict=True)]
            for name, rows in took.items()
        }
        (theirs_cpu, theirs_wall), (ours_cpu, ours_wall) = middle.values()
        print(
            f"  fit, {kind.__name__}: {theirs_cpu / ours_cpu:.1f}x the MLP's speed in CPU time "
            f"({ours_cpu:.2f} s, MLP {theirs_cpu:.2f}), {theirs_wall / ours_wall:.1f}x by the wall"
        )


def table(reference: float) -> None:
    """What p and subclasses do."""
    print(f"  p, supervision: accuracy, radius over the MLP's ({TABLE_SPLITS} splits)")
    for p in range(1, 7):
        words = []
        for supervision in ("labels", "discovered"):
            count = SUBCLASSES if supervision == "discovered" else None
            rows = [
                ours(
                    split(seed),
                    seed,
                    TABLE_ATTACKED,
                    p=p,
                    supervision=supervision,
                    n_subclasses=count,
                )
                for seed in range(TABLE_SPLITS)
            ]
            accuracy, radius = np.array(rows).mean(0)
            words.append(f"{supervision} {accuracy:.4f} {radius / reference:.2f}x")
        print(f"    p={p}: {'; '.join(words)}")


def main() -> None:
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        reference = bars()
        times()
        table(reference)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
