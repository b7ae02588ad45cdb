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
from tacit.papers.min2024.images.nets import pictures_of
from tacit.papers.min2024.overtraining.claims import claims
from tacit.papers.min2024.overtraining.figure import (
    over_epochs,
    proved_panel,
    regret_panel,
    robust_panel,
)
from tacit.papers.min2024.overtraining.looks import of_seed
from tacit.papers.min2024.overtraining.settings import Overtraining


def run(config: Overtraining, bench: Bench) -> Outcome:
    """Train, look, judge."""
    bench.tell(other_data(config, bench))
    pictures = pictures_of(config.dataset, config.classes).to(bench.device)
    if config.points >= len(pictures.test_x):
        raise CallError(
            f"points={config.points}: {config.dataset} has {len(pictures.test_x)} test points; give fewer, for "
            "the indicators need some that are not attacked"
        )
    seeds = bench.seeds(config.repeats)
    parts = [
        bench.part(f"epochs-{seed}", partial(of_seed, config, bench, pictures, seed))
        for seed in bench.steps(seeds, "trainings, a net for each p")
    ]
    data: xr.Dataset = xr.concat(parts, xr.Variable("seed", seeds))
    data = data.assign_attrs(test_points=len(pictures.test_x))
    return Outcome(data, tuple(claims(data, config, bench)), {})


def draw(data: xr.Dataset, config: Overtraining) -> Figure:
    """Robust and proved accuracy, the indicators, and what each of them would have cost."""
    figure = Figure(figsize=(13.0, 7.2))
    axes = figure.subplots(2, 3)
    robust_panel(axes[0, 0], data)
    proved_panel(axes[0, 1], data, config.proof)
    over_epochs(axes[0, 2], data, "accuracy", "(c) clean accuracy, held-out points")
    over_epochs(axes[1, 0], data, "loss", "(d) cross-entropy, held-out points", log=True)
    over_epochs(axes[1, 1], data, "distance", "(e) median margin over gradient")
    regret_panel(axes[1, 2], data)
    figure.suptitle(
        f"{setting_of(config)}; {config.repeats} trainings of each $p$", fontsize="medium"
    )
    return figure
