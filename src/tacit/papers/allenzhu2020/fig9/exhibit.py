r"""Figure 9: the summary, on AlexNet's first layer: w0, w, what is removed from w, w', and clean training again.

    pure part of w:     <w, w'>/||w'||^2 w'
    removed:            w less its pure part
    gained:             w'' less its own pure part,     w'' after clean training that went on from w'

By Section 6.2 w is M_j and a dense mixture v, small, and nearly the same for all neurons; adversarial training
removes v, and clean training from pure features accumulates it again. In numbers, filter by filter:
`removed_share` is ||removed||^2/||w||^2; `coarse`, `variation` and `participation` of each piece, the last over
how many waves it is spread, (sum c^2)^2 / sum c^4 of its cosine coefficients c; `likeness` the mean |cos| with
the same piece of the other filters; `returned` the cosine of gained and removed.
"""

from functools import partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cosine_similarity

from tacit.base.linalg import unit_rows
from tacit.lab import Bench, Outcome
from tacit.measure.features import waves
from tacit.measure.purification.density import participation
from tacit.papers.allenzhu2020.deep.features import DIMS
from tacit.papers.allenzhu2020.deep.filters import all_looked_at, seen
from tacit.papers.allenzhu2020.fig9.claims import claims
from tacit.papers.allenzhu2020.fig9.figure import draw as draw
from tacit.papers.allenzhu2020.fig9.settings import Summary

NETS = ("random", "clean", "robust", "again")
Rows = Float[Tensor, "h D"]
Pictures = Float[Tensor, "h C k l"]


def run(config: Summary, bench: Bench) -> Outcome:
    """Train, look, take apart, judge."""
    looks = bench.part(
        "nets",
        partial(all_looked_at, config, bench, NETS, points=config.points, again=config.again),
    )
    filters = {name: torch.from_numpy(looks["filter"].sel(net=name).values) for name in NETS}
    data = xr.merge([looks[["plain", "own"]], taken_apart(filters)])
    return Outcome(data, tuple(claims(data, config, bench)))


def taken_apart(filters: dict[str, Pictures]) -> xr.Dataset:
    """The numbers of all pieces of the filters of NETS."""
    clean, robust, again = (filters[name] for name in NETS[1:])
    removed, gained = beside(clean, robust), beside(again, robust)
    pieces = {**filters, "removed": removed, "gained": gained}
    rows = [
        seen(each)
        .drop_vars("spectrum")
        .assign(
            picture=(DIMS, each.numpy().astype(np.float32)),
            participation=("neuron", spread_over(each).numpy()),
            likeness=("neuron", likeness(each.flatten(1)).numpy()),
        )
        for each in pieces.values()
    ]
    found = xr.concat(rows, xr.Variable("piece", list(pieces)))
    left = removed.flatten(1).square().sum(1) / clean.double().flatten(1).square().sum(1)
    back = cosine_similarity(gained.flatten(1), removed.flatten(1))
    return found.assign(removed_share=("neuron", left.numpy()), returned=("neuron", back.numpy()))


def beside(w: Pictures, pure: Pictures) -> Pictures:
    """Each filter less its part along the pure one, in float64."""
    flat, axis = (each.to(torch.float64).flatten(1) for each in (w, pure))
    axis = unit_rows(axis)[0]
    return (flat - (flat * axis).sum(1, keepdim=True) * axis).view(w.shape)


def spread_over(pictures: Pictures) -> Float[Tensor, " h"]:
    """Over how many waves each is spread."""
    rows = waves(pictures).flatten(1)
    return participation(rows, torch.eye(rows.shape[1], dtype=rows.dtype))


def likeness(rows: Rows) -> Float[Tensor, " h"]:
    """The mean |cos| of each row with the others."""
    unit = unit_rows(rows.to(torch.float64))[0]
    cosines = (unit @ unit.T).abs()
    return (cosines.sum(1) - cosines.diagonal()) / (len(rows) - 1)
