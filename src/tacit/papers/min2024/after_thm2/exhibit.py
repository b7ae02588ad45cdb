"""The text after Theorem 2, read off trajectories of gradient flow on the centres (the simplified data).

With B(mu, delta) the directions at cosine 1 - delta or more from mu, T = log(1/(sqrt(h) eps))/(4 K), it says of
positive neurons:

- p = 1: one that is in B(average, delta) stays there until T;
- p >= 3: one that is outside stays outside until T, "i.e., any neuron initialized with some angular distance to
  [the average] will not get any closer to" it; "Instead, the neurons are now more likely to stay close to some
  subclass centers, as shown in (8)".

"Similar results can be said for negative neurons": they are followed beside the positive ones, around the average
and the centres of their own class, and are judged by themselves (`negative.`).

(7) is proved for neurons in the span of their class's centres. Outside of it the average attracts at every p
(`min2024.thm2`: it is a saddle for p > 2), and a neuron as (4) draws it begins outside: every part of it along
its active centres grows beside the rest, so its cosine with the average rises until one centre wins.

The flow moves a neuron along the centres and scales the rest of it, so K + 1 coordinates are exact for every D.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from tacit.base.estimate import least
from tacit.data import orthogonal_centres
from tacit.lab import Bench, Claim, Expected, Judge, Outcome
from tacit.measure import proportion
from tacit.nets import TwoLayerNet
from tacit.papers._shared.panels import THEORY
from tacit.papers._shared.universal import for_every
from tacit.papers.min2024.after_thm2.settings import Trajectories
from tacit.papers.min2024.lemma1.exhibit import horizons
from tacit.papers.min2024.lemma1.settings import EarlyPhase
from tacit.papers.min2024.thm2.near import About, Space, near
from tacit.train import Until, gradient_flow

WHERE = "Section 4.2, after Theorem 2"
GROUPS = ("random", "inside", "outside", "outside, span", "centre")
MARGIN = 0.01  # of delta: how far inside or outside the ball the neighbours start
ROUNDING = 0.01  # of a cosine: "closer" is more than this
TIE = 1e-3  # of a cosine: two of four centres are as near as their class's average, up to the flow's steps
TOLERANCE = 1e-3  # of a step of the flow
SHOWN = 12  # trajectories of a panel and sign
SIGNS = ("+", "-")
COLOURS = {"+": "C0", "-": "C2"}
SADDLE = "outside the span of its centres the average attracts: it is a saddle (errata: Theorem 2, (61) and (63))"
RISES = (
    "its parts along the active centres grow beside the rest, and the cosine with their sum rises"
)


def run(config: Trajectories, bench: Bench) -> Outcome:
    """Follow all neurons at each p."""
    w0 = starts(config, bench.generator("starts"))
    parts = [
        bench.part(f"p{p:g}", partial(follow, config, w0, p))
        for p in bench.steps(config.p, "powers")
    ]
    data = xr.concat(parts, "p").assign_coords(
        p=list(config.p), sign=list(SIGNS), group=list(GROUPS)
    )
    return Outcome(data, tuple(claims(data, config, bench)))


def starts(config: Trajectories, generator: torch.Generator) -> Float[Tensor, "2 groups n d"]:
    """w_j0 of each sign and group, in the coordinates along the centres and the length of the rest."""
    K, K1 = config.K, config.K1
    positive, negative = (of_one_class(config, own, generator) for own in (K1, K - K1))
    # the centres of the negative class are the last ones
    turned = torch.cat([negative[..., :K].roll(K1, -1), negative[..., K:]], -1)
    return torch.stack([positive, turned])


def of_one_class(
    config: Trajectories, own: int, generator: torch.Generator
) -> Float[Tensor, "groups n d"]:
    """Those of neurons whose own centres are the first `own`."""
    K, D, n = config.K, config.D, config.n
    w = 2 * torch.rand(n, D, generator=generator, dtype=torch.float64) - 1
    groups = [w / math.sqrt(D)]
    places: tuple[tuple[About, Space, int], ...] = (
        ("average", "all", -1), ("average", "all", 1), ("average", "span", 1), ("centre", "all", -1),
    )  # fmt: skip
    for about, space, side in places:
        here = near(K, own, D, about, space)
        groups.append(here.neighbour(here.leans(n, generator), config.delta * (1 + side * MARGIN)))
    every = torch.stack(groups)
    return torch.cat([every[..., :K], every[..., K:].norm(dim=-1, keepdim=True)], -1)


def follow(config: Trajectories, w0: Float[Tensor, "2 groups n d"], p: float) -> xr.Dataset:
    """Cosines with the own average and with the nearest own centre over time, all neurons in one net."""
    w = config.eps * w0.flatten(0, 2)
    size, K1 = w.norm(dim=1), config.K1
    sign = torch.tensor([1.0, -1.0]).to(w).repeat_interleave(len(w) // 2)
    centres = orthogonal_centres(config.K, config.K + 1)
    labels = torch.where(torch.arange(config.K) < config.K1, 1.0, -1.0).double()
    averages = torch.stack([centres[:K1].sum(0), centres[K1:].sum(0)])
    watched = torch.cat([averages, centres])
    early = EarlyPhase(config.D, config.K, config.K1, len(w), eps=(config.eps, config.eps / 10))
    T, end = horizons(early, p, config.eps, float(w0.norm(dim=-1).max()))
    times = np.concatenate(
        [np.linspace(0, T, config.times), np.geomspace(T, end, config.times + 1)[1:]]
    )
    flow = gradient_flow(
        TwoLayerNet(w, sign * size, p=p), centres, labels, sample_weight=torch.ones_like(labels),
        until=Until(time=float(times[-1])), record=[float(t) for t in times[1:]],
        watch=watched, merge_angle=0.0, tolerance=TOLERANCE,
    )  # fmt: skip
    (past,) = flow.history
    seen = watched / watched.norm(dim=1, keepdim=True)
    first = (w / size.unsqueeze(1)) @ seen.T
    cosines = torch.cat([first.unsqueeze(0), past.cosines]).reshape(
        len(times), len(SIGNS), len(GROUPS), -1, len(seen)
    )
    average = torch.stack([cosines[:, s, ..., s] for s in (0, 1)], 1)
    own = (slice(2, 2 + K1), slice(2 + K1, None))
    centre = torch.stack([cosines[:, s, ..., own[s]].amax(-1) for s in (0, 1)], 1)
    dims = ("frame", "sign", "group", "neuron")
    return xr.Dataset(
        {
            "average": (dims, average.numpy()),
            "centre": (dims, centre.numpy()),
            "time": (("frame",), times),
            "T": ((), T),
        }
    )


def claims(data: xr.Dataset, config: Trajectories, bench: Bench) -> Iterator[Claim]:
    """The sentences about positive neurons, then "similar results" of negative ones."""
    judge = bench.claims(
        WHERE, source="words", bar="paper: the ball's edge",
        regime=f"inside: simplified data, delta = {config.delta:g}, eps = {config.eps:g}, t <= T",
    )  # fmt: skip
    yield from of_sign(judge, data.sel(sign="+"), config, "", "a")
    yield from of_sign(judge, data.sel(sign="-"), config, "negative.", "a negative")


def of_sign(
    judge: Judge, data: xr.Dataset, config: Trajectories, prefix: str, a: str
) -> Iterator[Claim]:
    """The three sentences, each of every start at its worst p, and what is true in place of the second."""
    edge = 1 - config.delta
    until_T = data.where(data.time <= data["T"] * (1 + 1e-9))
    above = until_T.average.max("frame") - edge
    one, three = [p for p in config.p if p == 1], [p for p in config.p if p >= 3]
    positive, negative = Expected(min=0.0), Expected(max=0.0)
    if one:
        lowest = until_T.average.sel(group="inside", p=one).min(("frame", "p")) - edge
        text = (
            f"p = 1: {a} neuron in B(average, delta) stays there until T (least cosine - 1 + delta)"
        )
        yield for_every(judge, f"{prefix}average.p1", text, positive, lowest, over="starts")
    if three:
        out = above.sel(group="outside", p=three).max("p")
        share = float((out > 0).mean())
        text = f"p >= 3: {a} neuron just outside B(average, delta) stays out until T (largest cosine - 1 + delta)"
        because = f"{SADDLE}; {share:.0%} of these neighbours enter"
        yield for_every(judge, f"{prefix}average.p3", text, negative, out, because, "starts")
        text = f"p >= 3: {a} random neuron outside B(average, delta) stays out until T (largest excess)"
        yield for_every(
            judge,
            f"{prefix}random.ball",
            text,
            negative,
            above.sel(group="random", p=three).max("p"),
            "",
            "starts",
        )
        cosine = until_T.average.sel(group="random", p=three)
        gain = (cosine.max("frame") - cosine.isel(frame=0)).max("p")
        text = f"p >= 3: {a} random neuron gets no closer to the average until T (largest gain of the cosine)"
        because = f"{RISES}; {float((gain > ROUNDING).mean()):.0%} of the neurons come closer"
        yield for_every(judge.but(bar="ours: a hundredth of a cosine is no gain"), f"{prefix}random.closer", text,
                        Expected(max=ROUNDING), gain, because, "starts")  # fmt: skip
        lowest = until_T.centre.sel(group="centre", p=three).min(("frame", "p")) - edge
        text = f"p >= 3: {a} neuron in B(a centre, delta) stays there until T (least cosine - 1 + delta)"
        yield for_every(judge, f"{prefix}centre.p3", text, positive, lowest, over="starts")
        span = above.sel(group="outside, span", p=[p for p in config.p if p > 2]).max("p")
        text = f"p > 2, {a} neuron in the span of its centres stays out of B(average, delta) (largest excess)"
        yield for_every(judge.but(source="ours", bar="derived: min2024.thm2, average.span"),
                        f"{prefix}average.span", text, negative, span, over="starts")  # fmt: skip
    lead = (data.centre - data.average).isel(frame=-1).sel(group="random")
    apart = lead.where(abs(lead) > TIE, 0.0)
    tied = "at p = 1 a neuron ends at the average of the own centres that it sees; where these are as near as "
    tied += f"the class's, it is nearer to neither: {float((apart == 0).sel(p=one).mean()):.0%} of the starts"
    kind = "negative neurons" if prefix else "neurons"
    late = judge.but(
        bar="ours: more likely is more than half",
        regime=f"outside: at the end of the alignment phase, past T; eps = {config.eps:g}",
    )
    for id, powers, text, count in (
        (
            "favoured.p1",
            one,
            f"p = 1: {kind} end nearer to the average than to any centre",
            apart < 0,
        ),
        (
            "favoured.p3",
            three,
            f"p >= 3: {kind} end nearer to a centre than to the average",
            apart > 0,
        ),
    ):
        if powers:
            found = [
                proportion(int(count.sel(p=p).sum()), config.n, of=len(powers), over="starts")
                for p in powers
            ]
            because = tied if id == "favoured.p1" else ""
            text = f"{text} (share of random starts)"
            yield late(f"{prefix}{id}", text, Expected(min=0.5), least(found), because=because)


def draw(data: xr.Dataset, config: Trajectories) -> Figure:
    """Cosines with the own average against time, random starts above, neighbours of the ball's edge below."""
    powers = [p for p in config.p if p in (1.0, 2.0, 2.5, 3.0, 4.0)] or list(config.p)
    figure = Figure(figsize=(2.9 * len(powers), 5.8))
    rows = figure.subplots(2, len(powers), squeeze=False)
    for column, p in enumerate(powers):
        here = data.sel(p=p)
        random_panel(rows[0, column], here, config)
        edge_panel(rows[1, column], here, config)
        rows[0, column].set_title(f"$p$ = {p:g}")
    rows[0, 0].set_ylabel("cosine with the average\n(random starts)")
    rows[1, 0].set_ylabel(r"(cosine with the average $-1)/\delta$")
    rows[0, 0].legend(loc="lower right", fontsize="small")
    rows[1, 0].legend(loc="lower left", fontsize="small")
    return figure


def random_panel(axes: Axes, here: xr.Dataset, config: Trajectories) -> None:
    """Random starts of both signs up to the end of the alignment phase; dashed: the paper's T."""
    random = here.sel(group="random").transpose("frame", "neuron", "sign")
    for sign, colour in COLOURS.items():
        lines = random.average.sel(sign=sign)[:, :SHOWN]
        axes.plot(here.time, lines, color=colour, linewidth=0.8, alpha=0.7)
        axes.plot([], [], color=colour, label=f"$v$ {'>' if sign == '+' else '<'} 0")
    axes.axvline(float(here["T"]), **THEORY, label="$T$")
    for own in {config.K1, config.K - config.K1}:
        axes.axhline(1 / math.sqrt(own), color="C1", linewidth=1)
    axes.plot([], [], color="C1", linewidth=1, label="at a centre")
    axes.set(ylim=(-0.4, 1.05), xlim=(0, float(here["T"]) * 6), xlabel="time")


def edge_panel(axes: Axes, here: xr.Dataset, config: Trajectories) -> None:
    """Neighbours that start just outside the ball, of both signs, up to T; dashed: the edge of the ball."""
    early = here.isel(frame=slice(0, config.times))
    for group, colour, label in (
        ("outside", "C0", "anywhere"),
        ("outside, span", "C1", "in the span"),
    ):
        for sign in SIGNS:
            found = early.average.sel(group=group, sign=sign).transpose("frame", "neuron")
            lines = (found - 1) / config.delta
            axes.plot(early.time, lines[:, :SHOWN], color=colour, linewidth=0.8, alpha=0.6)
        axes.plot([], [], color=colour, label=label)
    axes.axhline(-1, **THEORY, label="edge of the ball")
    axes.set(ylim=(-3.2, 0.05), xlabel="time, up to $T$")
