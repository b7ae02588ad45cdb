"""Means of noise, one part for each alpha.

`TOY_LOG` names a file to which each computed alpha is added. `TOY_DIE=0.2:SIGKILL` makes the
process send itself that signal when it comes to that alpha: a kill in the middle, without a clock.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Any

import torch
import xarray as xr
from matplotlib import pyplot
from matplotlib.figure import Figure

from fakes.toy import Toy
from tacit.base.estimate import Certain, Estimate
from tacit.lab.bench import Bench
from tacit.lab.claims import Expected, Part
from tacit.lab.exhibit import Outcome

DRAWS = 1000


@dataclass(frozen=True)
class Net:
    w: torch.Tensor
    v: torch.Tensor

    def state(self) -> tuple[dict[str, Any], dict[str, str]]:
        return {"w": self.w, "v": self.v}, {"kind": "toy", "p": "1"}


def run(config: Toy, bench: Bench) -> Outcome:
    print("an exhibit may print what it likes")
    found = [
        bench.part(f"alpha={alpha}", lambda alpha=alpha: _mean(alpha, bench))
        for alpha in bench.steps(config.alpha, "noise")
    ]
    data = xr.concat(found, dim="alpha").assign_coords(alpha=list(config.alpha))
    data["whole"] = ("k", list(range(config.K)))
    data["yes"] = ("k", [True] * config.K)
    largest = float(abs(data["mean"] / data["alpha"]).max())
    found_mean = Estimate(largest, largest - 0.0123, largest + 0.0123, DRAWS * len(found), "draws")
    judge = bench.claims(
        "Theorem 1.2", source="words", bar="derived: 3 sd", regime="inside: any noise"
    )
    exact = judge.but(source="formula", bar="paper: eq. (1)")
    sums = [
        Part(f"plus{k}", f"1 + {k}", Expected(value=1 + k), Certain(1.0 + k, "a sum"))
        for k in (1, 2)
    ]
    text = "the mean is near zero, in units of [alpha] & so on"
    claims = (
        judge("toy2020.mean.small", text, Expected(max=0.1 + 3 / DRAWS**0.5), found_mean),
        exact(
            "toy2020.mean.two", "1 + 1 = 2", Expected(value=2), Certain(2.0, "a sum"), any_size=True
        ),
        exact(
            "toy2020.mean.odd", "1 + 1 = 3", Expected(value=3), Certain(2.0, "a sum"), any_size=True
        ),
        exact.family("toy2020.mean.sums", "all sums", sums),
        judge(
            "toy2020.mean.sum",
            "sums are exact",
            Expected(max=0),
            Certain(0, "a sum"),
            source="check",
        ),
    )
    return Outcome(data, claims, {"net a/b": Net(torch.eye(3)[:2], torch.ones(2))})


def draw(data: xr.Dataset, config: Toy) -> Figure:
    figure, axes = pyplot.subplots()
    axes.plot(data["alpha"], data["mean"], "o-")
    axes.set_title(f"K = {config.K}")
    axes.set_axis_off()  # ticks are what takes time to draw
    return figure


def _mean(alpha: float, bench: Bench) -> xr.Dataset:
    at, _, name = os.environ.get("TOY_DIE", "").partition(":")
    if at == str(alpha):
        os.kill(os.getpid(), signal.Signals[name])
    if log := os.environ.get("TOY_LOG"):
        with open(log, "a") as stream:
            stream.write(f"{alpha}\n")
    stream = bench.generator("noise", alpha)
    noise = torch.randn(DRAWS, generator=stream, device=bench.device, dtype=torch.float64)
    return xr.Dataset({"mean": alpha * noise.mean().item()})
