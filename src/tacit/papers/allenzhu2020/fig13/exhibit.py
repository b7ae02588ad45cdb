"""Figure 13: the images that excite neurons of the 27th convolution, in nets trained against each attacker.

As `allenzhu2020.fig10`, for one layer and four attackers.
"""

from functools import partial

import xarray as xr

from tacit.lab import Bench, Outcome
from tacit.papers.allenzhu2020.deep.features import features_of
from tacit.papers.allenzhu2020.deep.nets import images_of, nets_of
from tacit.papers.allenzhu2020.fig13.claims import claims
from tacit.papers.allenzhu2020.fig13.figure import draw as draw
from tacit.papers.allenzhu2020.fig13.settings import Attackers


def run(config: Attackers, bench: Bench) -> Outcome:
    """Train, ascend, judge."""
    shape = images_of(config).shape
    nets = nets_of(config, bench, ("clean", *config.attackers))
    found = [
        bench.part(
            f"net-{name}",
            partial(
                features_of, net, config.layer, shape,
                neurons=config.neurons, steps=config.steps, bench=bench,
            ),
        )
        for name, net in bench.steps(nets.items(), "nets")
    ]  # fmt: skip
    data = xr.concat(found, xr.Variable("net", list(nets)))
    return Outcome(data, tuple(claims(data, config, bench)))
