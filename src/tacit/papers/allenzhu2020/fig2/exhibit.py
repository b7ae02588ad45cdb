"""Figure 2: angles of the weights of each layer, at the start, after clean and after adversarial training.

w0, w and w' are the rows of a layer's weights: one for each neuron, its filter. In ResNet-34 they are those of
the three stages of Section 8.2 (`deep/stages.py`); in AlexNet all layers are trained at once, from random ones,
then clean, then on against the attacker. `apart` is the share of other neurons with theta(w_i, w_j) at most .2.
`plain` and `own` are of ResNet's nets on test images that ended no stage: right as they are, and (the share of
noisy copies) right under the attacker.
"""

from functools import partial

import numpy as np
import torch
import xarray as xr

from tacit.base.linalg import unit_rows
from tacit.errors import CallError
from tacit.lab import Bench, Outcome
from tacit.measure.attacked import kept_right
from tacit.measure.purification.angles import theta
from tacit.nn.layered import LayeredNet
from tacit.papers.allenzhu2020.deep.nets import alex_nets, ball_of, images_of
from tacit.papers.allenzhu2020.deep.stages import STAGES, staged
from tacit.papers.allenzhu2020.fig2.claims import SMALL, claims
from tacit.papers.allenzhu2020.fig2.figure import draw as draw
from tacit.papers.allenzhu2020.fig2.settings import Turned


def run(config: Turned, bench: Bench) -> Outcome:
    """Train, compare, judge; a layer whose angles are known is not trained again."""
    room = len(images_of(config).test_y) - config.watch
    if config.points > room:
        raise CallError(
            f"points={config.points}: of the test images {room:,} are left beside watch={config.watch}"
        )
    found = [bench.part("alexnet", partial(alex_angles, config, bench))]
    found += [
        bench.part(f"layer-{layer}", partial(layer_angles, config, layer, bench))
        for layer in bench.steps(config.layers, "layers, three stages each")
    ]
    data = xr.concat(found, "unit", join="outer")
    return Outcome(data, tuple(claims(data, config, bench)))


def alex_angles(config: Turned, bench: Bench) -> xr.Dataset:
    """AlexNet's layers; its accuracies are not in the caption, and not here."""
    nets = alex_nets(config.alex, bench)
    layers = range(1, config.alex.convolutions + 1)
    each = [angles_of(nets, layer).expand_dims("unit") for layer in layers]
    data = xr.concat(each, "unit", join="outer")
    return data.assign_coords(net=("unit", ["AlexNet"] * len(each)), layer=("unit", list(layers)))


def layer_angles(config: Turned, layer: int, bench: Bench) -> xr.Dataset:
    """One layer of the residual net: angles, and the accuracies of its stages."""
    made = staged(config, bench, layer)
    x, y = images_of(config).tested(config.watch + config.points, bench.device)
    x, y = x[config.watch :], y[config.watch :]
    ball = ball_of(config.attacker)
    nets = {"stage 1": made.first, **{name: made.nets[name] for name in STAGES[1:]}}
    data = angles_of(made.nets, layer)
    for key, within in (("plain", None), ("own", ball)):
        right = [kept_right(net, x, y, within, seed=bench.seed) for net in nets.values()]
        values = torch.stack(right).cpu().numpy().astype(np.float32)
        data[key] = (("stage", "point"), values)
    data["epochs"] = made.epochs
    data["reached"] = float(made.reached)
    return data.assign_coords(stage=list(nets), net=config.net, layer=layer).expand_dims("unit")


def angles_of(nets: dict[str, LayeredNet], layer: int) -> xr.Dataset:
    """theta between the three moments of each neuron, and the share of others that are apart from it."""
    start, clean, robust = (
        nets[name].convolutions[layer - 1].weight.detach().flatten(1).cpu() for name in STAGES
    )
    unit = unit_rows(clean.to(torch.float64))[0]
    near = (unit @ unit.T).abs() <= SMALL
    near.fill_diagonal_(False)
    values = {
        "start_clean": theta(start, clean),
        "start_robust": theta(start, robust),
        "clean_robust": theta(clean, robust),
        "apart": near.to(torch.float64).sum(1) / (len(near) - 1),
    }
    return xr.Dataset(
        {name: ("neuron", each.numpy()) for name, each in values.items()},
        coords={"neuron": np.arange(len(unit))},  # layers of fewer are filled up with NaN
    )
