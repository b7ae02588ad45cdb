"""Neurons from a small start, on the unit sphere or circle: min2024, Figure 1, and the min2025 poster.

The sphere is drawn by orthographic projection: a point c is seen at (<right, c>, <up, c>), and faces the viewer
where <toward, c> > 0. What is behind is paler. A thin ray is the direction of a neuron, w_j/||w_j||; a thick one
that ends in a disc is w_j itself, in units of the longest neuron at the end. Blue votes +1, red votes -1.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.patheffects import withStroke
from torch import Tensor

from tacit.errors import RunError
from tacit.nets import TwoLayerNet
from tacit.train import Flowed

Array = npt.NDArray[np.floating[Any]]

SIGNS = {1: "C0", -1: "C1"}
HALO = [withStroke(linewidth=2.2, foreground="white")]
FROM_ABOVE: Array = np.eye(3)
TRAIL = 6  # moments


def balanced_start(h: int, D: int, eps: float, generator: torch.Generator) -> TwoLayerNet:
    """min2024 (4): w_j = eps w_j0, entries of w_j0 uniform in (-1/sqrt(D), 1/sqrt(D)), |v_j| = ||w_j||.

    Signs of v by turns, so that both classes have as many neurons.
    """
    uniform = torch.rand(h, D, generator=generator, dtype=torch.float64)
    w = eps * (2 * uniform - 1) / math.sqrt(D)
    return TwoLayerNet(w, w.norm(dim=1) * torch.where(torch.arange(h) % 2 == 0, 1.0, -1.0))


@dataclass(frozen=True)
class Moments:
    """An ensemble at shared moments, time 0 first: `direction` (E, time, h, D), `mass` |v| ||w|| (E, time, h)."""

    direction: Array
    mass: Array


def moments(
    flowed: Flowed, w: Float[Tensor, "E h D"], v: Float[Tensor, "E h"], frames: int
) -> Moments:
    """What was recorded at `frames` times, with all axes watched, and before it the start (w, v)."""
    norm = w.norm(dim=2, keepdim=True)
    begin = (w / norm, (norm.squeeze(2) * v.abs()).log())
    directions, masses = [], []
    for member, past in enumerate(flowed.history):
        if len(past.log_time) < frames:
            raise RunError(
                f"the flow of net {member} ({flowed.stopped[member]}) ended at t = "
                f"{math.exp(flowed.ended[member].log_time):.3g}, before the last moment asked for: "
                "use more neurons (h), another seed, or a shorter time"
            )
        directions.append(torch.cat([begin[0][member][None], past.cosines]))
        masses.append(torch.cat([begin[1][member][None], past.log_mass]).exp())
    return Moments(torch.stack(directions).numpy(), torch.stack(masses).numpy())


def lengths(mass: Array) -> Array:
    """Norms sqrt(mass) of balanced neurons (time, h), in units of the longest at the end."""
    norm = np.sqrt(mass)
    return np.asarray(norm / norm[-1].max())


def view(azimuth: float, elevation: float) -> Array:
    """The rows right, up, toward of a viewer at these angles (degrees)."""
    a, e = math.radians(azimuth), math.radians(elevation)
    right = (-math.sin(a), math.cos(a), 0.0)
    toward = (math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e))
    return np.array([right, np.cross(toward, right), toward])


def seen(points: Array, frame: Array) -> tuple[Array, Array]:
    """Places in the picture (..., 2) and depths (...), positive towards the viewer; the plane is z = 0."""
    if points.shape[-1] == 2:
        points = np.concatenate([points, np.zeros((*points.shape[:-1], 1))], -1)
    turned = points @ frame.T
    return turned[..., :2], turned[..., 2]


def shade(depth: Array, front: float, back: float) -> Array:
    """Opacity of what lies at these depths."""
    return back + (front - back) * np.clip(0.5 + 2 * depth, 0, 1)


class Globe:
    """One sphere (or circle, seen `FROM_ABOVE`) in its axes: what stands still, and neurons that `show` moves.

    `moving`: neurons have trails, and are drawn by who plays the animation, not with the figure.
    """

    def __init__(self, axes: Axes, frame: Array, sign: Array, *, moving: bool = False) -> None:
        self.axes, self.frame, self.sign = axes, frame, sign
        self.colours = np.array([to_rgb(SIGNS[1 if s > 0 else -1]) for s in sign])
        axes.set_aspect("equal")
        axes.set_axis_off()
        axes.set(xlim=(-1.22, 1.22), ylim=(-1.18, 1.18))
        axes.add_patch(
            Circle((0, 0), 1, facecolor="#F7F7F5", edgecolor="0.72", linewidth=0.9, zorder=0)
        )
        if abs(frame[2, 2]) < 1:
            self._graticule()
        self.trails: Any = LineCollection([], linewidths=1.1, zorder=2.5)
        self.rays: Any = LineCollection([], linewidths=0.7, zorder=3)
        self.stems: Any = LineCollection([], linewidths=2.4, capstyle="round", zorder=4)
        for lines in (self.trails, self.rays, self.stems):
            axes.add_collection(lines)
        none = np.zeros(len(sign))
        self.tips: Any = axes.scatter(none, none, s=9, linewidths=0, zorder=5)
        self.heads: Any = axes.scatter(
            none, none, s=30, linewidths=0.7, edgecolors="white", zorder=6
        )
        for artist in (self.trails, self.rays, self.stems, self.tips, self.heads):
            artist.set_animated(moving)

    def _graticule(self) -> None:
        """Circles of latitude and longitude, every 30 degrees; what is behind is paler."""
        turn = np.linspace(0, 2 * math.pi, 91)
        ring = np.stack([np.cos(turn), np.sin(turn), 0 * turn], 1)
        level = np.radians([-60, -30, 0, 30, 60])
        circles = [ring * [math.cos(b), math.cos(b), 0] + [0, 0, math.sin(b)] for b in level]
        for a in np.radians([0, 30, 60, 90, 120, 150]):
            circles.append(
                np.outer(ring[:, 0], [math.cos(a), math.sin(a), 0])
                + np.outer(ring[:, 1], [0, 0, 1])
            )
        for front, colour in ((True, "0.86"), (False, "0.925")):
            pieces = []
            for circle in circles:
                at, depth = seen(circle, self.frame)
                pieces.append(np.where(((depth >= 0) == front)[:, None], at, np.nan))
            self.axes.add_collection(
                LineCollection(pieces, colors=colour, linewidths=0.5, zorder=1 + front / 10)
            )

    def data(self, x: Array, y: Array) -> None:
        """The samples, as crosses in the colour of their class."""
        at, depth = seen(x, self.frame)
        for label, colour in SIGNS.items():
            mine = y == label
            rgba = [(*to_rgb(colour), a) for a in shade(depth[mine], 0.55, 0.2)]
            self.axes.scatter(
                at[mine, 0], at[mine, 1], s=14, c=rgba, marker="x", linewidths=0.8, zorder=2
            )

    def landmark(
        self,
        direction: Array,
        name: str,
        *,
        style: str = ":",
        label: tuple[float, float] | None = None,
    ) -> None:
        """A direction that theory names: a line from the middle; its name outside the disc, or at `label`."""
        at, _ = seen(np.asarray(direction) / np.linalg.norm(direction), self.frame)
        self.axes.plot([0, at[0]], [0, at[1]], style, color="0.25", linewidth=1.2, zorder=2.2)
        x, y = 1.16 * at / np.linalg.norm(at) if label is None else label
        self.axes.text(x, y, name, ha="center", va="center", zorder=8, path_effects=HALO)

    def show(self, direction: Array, length: Array, past: Array | None = None) -> None:
        """Put the neurons at unit `direction` (h, D) and `length` (h,); `past` (frames, h, D) is their trail."""
        tip, depth = seen(direction, self.frame)
        head = tip * length[:, None]
        long = length > 0.02  # shorter ones are dots at the middle, and say nothing
        self.rays.set_segments([[(0, 0), t] for t in tip])
        self.rays.set_color(self._rgba(shade(depth, 0.38, 0.12)))
        self.stems.set_segments([[(0, 0), h] for h in head[long]])
        self.stems.set_color(self._rgba(shade(depth, 0.95, 0.45))[long])
        self.tips.set_offsets(tip)
        self.tips.set_facecolor(self._rgba(shade(depth, 1.0, 0.3)))
        self.heads.set_offsets(np.where(long[:, None], head, np.nan))
        self.heads.set_facecolor(self._rgba(np.ones(len(length))))
        if past is not None:
            path, deep = seen(past, self.frame)
            self.trails.set_segments(list(path.transpose(1, 0, 2)))
            self.trails.set_color(self._rgba(shade(deep.mean(0), 0.35, 0.12)))

    def _rgba(self, opacity: Array) -> Array:
        """The colours of the neurons' signs with these opacities."""
        return np.concatenate(
            [self.colours, np.broadcast_to(opacity, len(self.colours))[:, None]], 1
        )


def key(axes: Axes, **place: Any) -> None:
    """What the marks mean."""
    for label, colour in SIGNS.items():
        name = f"neurons $w_j$, $v_j {'>' if label > 0 else '<'} 0$"
        axes.plot([], [], "-o", color=colour, markeredgecolor="white", label=name)
    axes.plot([], [], "-", color="0.5", linewidth=0.8, label=r"directions $w_j/\|w_j\|$")
    for label, colour in SIGNS.items():
        axes.plot([], [], "x", color=colour, markersize=4, label=f"data, $y = {label:+d}$")
    axes.legend(**{"loc": "center", "handlelength": 1.5, **place})


def decades(axes: Axes, times: Sequence[float] | Array) -> None:
    """A logarithmic axis of time."""
    axes.set(xscale="log", xlim=(float(times[0]), float(times[-1])), xlabel="time $t$")


def clock(time: float) -> str:
    """A moment in three digits."""
    return f"$t$ = {time:.3g}" if time < 1000 else f"$t$ = {time:,.0f}"


def play(
    figure: Figure,
    strip: Axes,
    globes: Sequence[tuple[Globe, Array, Array]],
    times: Array,
    losses: Mapping[str, Array],
) -> Iterator[Figure]:
    """The frames: each globe with its directions (time, h, D) and lengths (time, h), over a strip of losses."""
    shown = np.maximum(times, times[1])  # time 0 has no place on a logarithmic axis
    for index, (name, loss) in enumerate(losses.items()):
        strip.plot(
            times[1:], loss[1:], ("-", "--", ":")[index % 3], color=f"C{2 + index}", label=name
        )
    decades(strip, times[1:])
    strip.set_ylabel("loss")
    strip.legend(loc="lower left")
    now = strip.axvline(shown[0], color="0.15", linewidth=1.2, animated=True)
    told = strip.text(0.99, 0.9, "", transform=strip.transAxes, ha="right", va="top", animated=True)
    for moment, time in enumerate(times):
        for globe, direction, length in globes:
            past = direction[max(moment - TRAIL, 0) : moment + 1]
            globe.show(direction[moment], length[moment], past)
        now.set_xdata([shown[moment]] * 2)
        told.set_text(clock(float(time)))
        yield figure
