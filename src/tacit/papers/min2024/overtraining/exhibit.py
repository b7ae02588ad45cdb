r"""When to stop: robust accuracy and margins against epochs, for each p, clean training.

Nets of Section 5.2.1 are looked at after several epochs: attacked by APGD on the margin from several starts
(one start overstates large p, see `min2024.overstated`), certified, and read without an attack. Is there a best
epoch, is it before the end, and would the held-out loss, the clean accuracy or the margin have told?
"""

from functools import partial

import xarray as xr
from matplotlib.figure import Figure

from tacit.errors import CallError
from tacit.lab import Bench, Outcome
from tacit.papers.min2024.images.claims import other_data, setting_of
from tacit.papers.min2024.images.grounds import (
    first_images,
    mnist_missing,
    of_mnist,
    prefixed,
    without_mnist,
)
from tacit.papers.min2024.images.nets import pictures_of
from tacit.papers.min2024.overtraining.claims import claims, no_mnist
from tacit.papers.min2024.overtraining.figure import (
    over_epochs,
    proved_panel,
    regret_panel,
    robust_panel,
)
from tacit.papers.min2024.overtraining.looks import of_seed
from tacit.papers.min2024.overtraining.settings import Overtraining


def run(config: Overtraining, bench: Bench) -> Outcome:
    """Train, look, judge: on each ground."""
    bench.tell(other_data(config, bench))
    data = on_ground(config, bench)
    found = list(claims(data, config, bench))
    left_out = mnist_missing() if config.mnist else None
    bench.tell(left_out)
    if left_out is not None:
        found.append(no_mnist(left_out, bench))
    elif config.mnist:
        own = config.on_mnist()
        more = on_ground(own, bench)
        found += claims(more, own, bench, "mnist.")
        data = data.merge(prefixed(more, ("p", "row"))).assign_attrs(data.attrs)
    return Outcome(data, tuple(found), {})


def on_ground(config: Overtraining, bench: Bench) -> xr.Dataset:
    """All trainings on the images of `config.dataset`."""
    pictures = pictures_of(config.dataset, config.classes).to(bench.device)
    if config.dataset == "mnist":
        pictures = first_images(pictures, config.mnist_train)
    if config.points >= len(pictures.test_x):
        raise CallError(
            f"points={config.points}: {config.dataset} has {len(pictures.test_x)} test points; give fewer, for "
            "the indicators need some that are not attacked"
        )
    seeds = bench.seeds(config.repeats)
    parts = [
        bench.part(
            f"{config.dataset}-epochs-{seed}", partial(of_seed, config, bench, pictures, seed)
        )
        for seed in bench.steps(seeds, f"trainings on {config.dataset}, a net for each p")
    ]
    data: xr.Dataset = xr.concat(parts, xr.Variable("seed", seeds))
    return data.assign_attrs(test_points=len(pictures.test_x))


def draw(data: xr.Dataset, config: Overtraining) -> Figure:
    """Robust and proved accuracy, the indicators, and what each of them would have cost."""
    rows = 3 if "mnist_kept" in data else 2
    figure = Figure(figsize=(13.0, 3.5 * rows))
    axes = figure.subplots(rows, 3)
    letters = iter("abcdefghi")
    first, here = without_mnist(data), config.dataset
    robust_panel(axes[0, 0], first, f"({next(letters)}) {here}: robust accuracy under attack")
    proved_panel(axes[0, 1], first, config.proof, f"({next(letters)}) {here}")
    regret_panel(
        axes[0, 2], first, f"({next(letters)}) {here}: robust accuracy lost by stopping at"
    )
    over_epochs(
        axes[1, 0], first, "accuracy", f"({next(letters)}) {here}: clean accuracy, held-out points"
    )
    over_epochs(
        axes[1, 1],
        first,
        "loss",
        f"({next(letters)}) {here}: cross-entropy, held-out points",
        log=True,
    )
    over_epochs(
        axes[1, 2], first, "distance", f"({next(letters)}) {here}: median margin over gradient"
    )
    if rows > 2:
        second = of_mnist(data)
        robust_panel(axes[2, 0], second, f"({next(letters)}) MNIST: robust accuracy under attack")
        proved_panel(axes[2, 1], second, config.mnist_proof, f"({next(letters)}) MNIST")
        regret_panel(
            axes[2, 2], second, f"({next(letters)}) MNIST: robust accuracy lost by stopping at"
        )
    said = f"{setting_of(config)}; {config.repeats} trainings of each $p$"
    if rows > 2:
        said += f"; MNIST: {config.mnist_train} images, {max(config.mnist_at)} epochs"
    figure.suptitle(said, fontsize="medium")
    return figure
