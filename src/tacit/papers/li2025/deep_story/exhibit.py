r"""Do activation, labels and adversarial training do the same thing in a deep net?

min2024 makes a shallow net robust by its activation, li2025 by its labels, allenzhu2020 a deep one by adversarial
training; frei2023 and min2025 say what is wrong with a net that none of this touched: it averages. Here one deep
net, a ResNet-18, has each treatment in turn, on one task: the first five classes against the last five. Each row
of the table is such a net, eight in all (`nets`), compared with the one of 2 labels in what the papers measure
(`measured`, `effects`): robust accuracy, its price, averaging, purity of features. None of it is in a paper but
the order of `two` and `ten` (li2025, Figure 3). The predictions are ours: what works in a shallow net works here,
and does what adversarial training does.

Each net's measurements are one part of the run, which trains the net: parts outlive nets.
"""

from functools import partial

import xarray as xr

from tacit.errors import CallError
from tacit.lab import Bench, Outcome
from tacit.papers.li2025.deep_story.claims import claims
from tacit.papers.li2025.deep_story.figure import draw as draw
from tacit.papers.li2025.deep_story.measured import measured
from tacit.papers.li2025.deep_story.nets import images_of
from tacit.papers.li2025.deep_story.settings import DeepStory


def run(config: DeepStory, bench: Bench) -> Outcome:
    """Train, attack, read off, judge."""
    test = len(images_of(config).test_y)
    for name in ("points", "images"):
        if getattr(config, name) > test:
            raise CallError(
                f"{name}={getattr(config, name)}: {config.dataset} has {test} test images"
            )
    seeds = bench.seeds(config.repeats)
    pairs = [(row, seed) for seed in seeds for row in config.rows]
    parts = {
        (row, seed): bench.part(f"{row}-seed{seed}", partial(measured, config, bench, row, seed))
        for row, seed in bench.steps(pairs, "nets, all measurements each")
    }
    data = xr.concat(
        [xr.concat([parts[row, seed] for seed in seeds], "seed") for row in config.rows], "row"
    ).assign_coords(row=list(config.rows), seed=seeds)
    return Outcome(data, tuple(claims(data, config, bench)))
