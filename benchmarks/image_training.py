"""Training on images as min2024's Figures 3 and 6 need it, against the loop as released and against its floor.

Nets 784 -> 500 -> 10, 50,000 training and 10,000 test points, batches of 1,000, Adam; MNIST where it is at hand,
else noise of its shape (the arithmetic is the same). Each epoch also gives train and test accuracy and the
stable rank of the 50,000 x 500 features. Seconds by the wall, a net and an epoch, on the same cores:

    tacit      p = 1, 2, 3, 4 as one ensemble, a thread a core
    the loop   one net, p = 3, torch's threads on all cores: DataLoaders over a TensorDataset (of batches, of all
               training points, of all test points; the released ones have 8 worker processes each), an autograd
               module, torch's Adam; before each epoch the training points go through the net twice and the
               test points once, and features and weights each through an SVD
    the floor  two products of 50,000 x 784 x 500, at the rate of torch.mm on batches of 1,000, a thread a core

Bars of the project: >= 4 times faster than the loop, with the curves; training alone within 1.5 of the floor.
Run it when nothing else runs.
"""

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tacit.base.threads import cores, side_by_side
from tacit.data.images import load_images, present
from tacit.nets import PolyReLUNet, poly_relu_start
from tacit.papers.min2024.images.nets import accuracy, curves_at
from tacit.train import train_logits

N, TEST, D, H, CLASSES, BATCH, STEP = 50_000, 10_000, 784, 500, 10, 1000, 1e-3
POWERS, P, AT = (1.0, 2.0, 3.0, 4.0), 3, 2  # the loop has POWERS[AT]
EPOCHS, LOOP_EPOCHS, ROUNDS = 8, 1, 3


def main() -> None:
    x, y, test_x, test_y, name = points()
    starts = [
        poly_relu_start(
            D,
            H,
            CLASSES,
            p,
            [torch.Generator().manual_seed(0)],
            bound=math.sqrt(6 / H),
            centre=x.mean(0),
        )
        for p in POWERS
    ]
    seen: list[tuple[float, float]] = []
    prepared, tested = starts[0].prepared(x), starts[0].prepared(test_x)

    def watch(epoch: int, nets: tuple[PolyReLUNet, ...]) -> None:
        """The figures' curves."""
        if epoch:
            found = curves_at(nets, prepared, y)
            test = accuracy(nets, tested, test_y)
            seen.append((float(test[AT, 0]), float(found["stable_rank"][AT, 0])))

    train(starts, x[:BATCH], y[:BATCH], 1)  # warm up
    share = EPOCHS * len(starts)
    floors, alones, curves = [], [], []
    loops: dict[int, list[float]] = {0: [], 8: []}
    for _ in range(ROUNDS):  # in turn, the best of each: neighbours come and go
        floors.append(seconds(lambda: products(x)) / len(starts))
        alones.append(seconds(lambda: train(starts, x, y, EPOCHS)) / share)
        curves.append(seconds(lambda: train(starts, x, y, EPOCHS, watch)) / share)
        for workers, found in loops.items():
            loop, last = released_loop(starts[AT], x, y, test_x, test_y, workers)
            found.append(loop)
    floor, alone, whole = min(floors), min(alones), min(curves)
    print(f"training on {name}, {cores()} core(s), seconds a net and an epoch:")
    print(
        f"  alone {alone:.2f}, its products {floor:.2f}: {alone / floor:.2f} times the floor (bar 1.5)"
    )
    for workers, found in loops.items():
        print(
            f"  with curves {whole:.2f}, the loop with {workers} loader processes {min(found):.2f}: "
            f"{min(found) / whole:.1f}x (bar 4)"
        )
    print(
        f"  p = {P} after epoch {LOOP_EPOCHS}: test accuracy {seen[LOOP_EPOCHS - 1][0]:.3f}, stable rank "
        f"{seen[LOOP_EPOCHS - 1][1]:.2f}; the loop {last[0]:.3f}, {last[1]:.2f}"
    )


def points() -> tuple[Tensor, Tensor, Tensor, Tensor, str]:
    """Training and test points with labels."""
    if present("mnist"):
        images = load_images("mnist")
        x, y, name = images.pixels(), torch.from_numpy(images.y), "MNIST"
    else:
        g = torch.Generator().manual_seed(1)
        x = torch.rand(N + TEST, D, generator=g)
        y, name = torch.randint(CLASSES, (N + TEST,), generator=g), "noise of MNIST's shape"
    return x[:N], y[:N], x[N : N + TEST], y[N : N + TEST], name


def train(
    nets: list[PolyReLUNet],
    x: Tensor,
    y: Tensor,
    epochs: int,
    watch: Callable[[int, tuple[PolyReLUNet, ...]], None] | None = None,
) -> None:
    """As the exhibits do it."""
    order = torch.Generator().manual_seed(2)
    train_logits(
        nets,
        x,
        y,
        epochs=epochs,
        batch=BATCH,
        generator=order,
        step=STEP,
        watch=watch,
        workers=cores(),
    )


def seconds(work: Callable[[], None]) -> float:
    """By the wall."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def products(x: Tensor) -> None:
    """Of an epoch of all nets: neurons with a batch, and what they pull with the batch again."""

    def one(_: float) -> None:
        w, pull = torch.randn(H, D), torch.randn(H, BATCH)
        for part in x.split(BATCH):
            torch.mm(w, part.T)
            torch.mm(pull, part)

    side_by_side(one, POWERS, cores())


class Module(nn.Module):
    """The layer in autograd: relu(<w, c>)^p / (||w|| ||c||)^(p-1), then a linear one."""

    def __init__(self, net: PolyReLUNet) -> None:
        super().__init__()
        assert net.b is not None
        assert net.centre is not None
        self.w, self.out = nn.Parameter(net.w[0].clone()), nn.Linear(H, CLASSES)
        self.out.weight.data, self.out.bias.data = net.v[0].clone(), net.b[0].clone()
        self.centre = net.centre

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and features."""
        c = x - self.centre
        scale = (self.w.norm(dim=1) * c.norm(dim=1, keepdim=True)) ** (P - 1)
        features = torch.relu(c @ self.w.T) ** P / scale
        return self.out(features), features


def released_loop(
    net: PolyReLUNet, x: Tensor, y: Tensor, test_x: Tensor, test_y: Tensor, workers: int
) -> tuple[float, tuple[float, float]]:
    """Seconds an epoch, and test accuracy and stable rank after the last."""
    torch.manual_seed(3)
    torch.set_num_threads(cores())
    model = Module(net)
    adam = torch.optim.Adam(model.parameters(), lr=STEP)
    train_set, test_set = TensorDataset(x, y), TensorDataset(test_x, test_y)
    batches = DataLoader(train_set, batch_size=BATCH, shuffle=True, num_workers=workers)
    whole = DataLoader(train_set, batch_size=len(x), num_workers=workers)
    test = DataLoader(test_set, batch_size=len(test_x), num_workers=workers)

    def look() -> tuple[float, float]:
        with torch.no_grad():
            points, labels = next(iter(whole))
            logits, features = model(points)
            nn.functional.cross_entropy(logits, labels)
            (model(points)[0].argmax(1) == labels).float().mean()
            points, labels = next(iter(test))
            right = (model(points)[0].argmax(1) == labels).float().mean()
            torch.linalg.norm(model.w, ord=2)
            norms = torch.linalg.norm(features), torch.linalg.norm(features, ord=2)
            return float(right), float((norms[0] / norms[1]) ** 2)

    def epochs() -> None:
        for _ in range(LOOP_EPOCHS):
            look()
            for part, label in batches:
                nn.functional.cross_entropy(model(part)[0], label).backward()
                adam.step()
                adam.zero_grad()

    found = seconds(epochs) / LOOP_EPOCHS
    last = look()
    torch.set_num_threads(1)
    return found, last


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
