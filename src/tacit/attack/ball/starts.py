"""Where an attack starts from. Gradients are blind in flat places, so it starts from several.

| name       | at a given radius                                                                       |
| ---------- | --------------------------------------------------------------------------------------- |
| `zero`     | the point itself                                                                        |
| `gradient` | the extreme point of ball and box against the gradient at the point (one step of FGM)    |
| `random`   | uniform in the ball, then projected on the box; repeat the name for more of them         |
| `towards`  | two-layer nets: the extreme point along each neuron of the other sign, heaviest first;   |
|            | other models: towards the mean of each other class, nearest first, never beyond it       |
| a tensor   | a perturbation of each point, projected on ball and box                                  |
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from tacit.attack.norms import Norm, Room
from tacit.base.shapes import Column, Labels, Rows
from tacit.nets import TwoLayerNet
from tacit.nets.kinds import kind_of

NAMES = ("zero", "gradient", "random", "towards")
MOST_TOWARDS = 10
ALIKE = 0.99  # neurons whose cosine is above this are one direction


@dataclass(frozen=True)
class Start:
    """`at(radius)` is the perturbation it begins with; `goal`, where it has one, the class it runs to.

    With the margin as the loss of a model with logits, a row that has a goal lowers z_y - z_goal.
    """

    name: str
    at: Callable[[Column], Rows]
    goal: Labels | None = None


@dataclass(frozen=True)
class Landmarks:
    """Rows (k, D) to run towards, the class of each, whether they are points or directions.

    `count` is how many of them a point is sent to.
    """

    rows: Float[Tensor, "k D"]
    label: Shaped[Tensor, " k"]
    points: bool
    count: int


def landmarks_of(
    model: Any, x: Rows, y: Labels, means: Float[Tensor, "C D"] | None, one_output: bool
) -> Landmarks:
    """The directions that the model's kind registers, or the class means: those given, or those of x by y.

    Means given for a one-output model are those of -1 and +1, in this order.
    """
    kind = kind_of(model)
    directions = None if kind is None else kind.landmarks
    if directions is not None:
        rows, label = directions(model)
    elif means is not None:
        rows, label = means, torch.arange(len(means), device=x.device)
        label = (2 * label - 1).to(x.dtype) if one_output else label
    else:
        label = y.unique()
        rows = torch.stack([x[y == k].mean(0) for k in label])
    count = max(int((label != k).sum()) for k in y.unique())
    return Landmarks(rows, label, directions is None, min(count, MOST_TOWARDS))


def heaviest_neurons(net: TwoLayerNet) -> tuple[Float[Tensor, "k D"], Float[Tensor, " k"]]:
    """Neurons of both signs, and their signs."""
    kept = torch.cat([apart(net, sign) for sign in (1, -1)])
    return net.w[kept], net.v[kept].sign()


def apart(net: TwoLayerNet, sign: int) -> Int[Tensor, " k"]:
    """At most MOST_TOWARDS neurons of one sign, heaviest first, none nearly parallel to one before it."""
    norm = net.w.norm(dim=1)
    mass = torch.where(net.v * sign > 0, net.v.abs() * norm, 0.0)
    kept: list[Tensor] = []
    while len(kept) < MOST_TOWARDS and bool(mass.max() > 0):
        kept.append(mass.argmax())
        near = net.w @ net.w[kept[-1]] > ALIKE * norm * norm[kept[-1]]
        mass = torch.where(near, 0.0, mass)
    return torch.stack(kept) if kept else torch.zeros(0, dtype=torch.long, device=net.w.device)


def towards(marks: Landmarks, x: Rows, y: Labels, norm: Norm, room: Room | None) -> list[Start]:
    """One start for each landmark of another class, in each point's own order."""
    foreign = marks.label.unsqueeze(0) != y.unsqueeze(1)
    far = (
        torch.cdist(x, marks.rows)
        if marks.points
        else torch.arange(len(marks.rows), device=x.device, dtype=x.dtype).expand(len(x), -1)
    )
    order = torch.where(foreign, far, torch.inf).argsort(dim=1, stable=True)
    starts = []
    for k in range(marks.count):
        # a point with fewer of them sees its own again
        pick = order.gather(1, (k % foreign.sum(1, keepdim=True).clamp_min(1))).squeeze(1)
        starts.append(towards_one(marks, pick, x, norm, room, f"towards {k + 1}"))
    return starts


def towards_one(
    marks: Landmarks, pick: Int[Tensor, " n"], x: Rows, norm: Norm, room: Room | None, name: str
) -> Start:
    """Towards landmark pick[i] from point i."""

    def to_point(radius: Column) -> Rows:
        way = marks.rows[pick] - x
        size = norm.size(way).unsqueeze(1)
        return norm.project(way * torch.where(size > radius, radius / size, 1.0), radius, room)

    def along(radius: Column) -> Rows:
        return norm.extreme(marks.rows[pick], radius, room)

    return Start(name, to_point if marks.points else along, marks.label[pick])


def starts_of(
    names: Sequence[str | Rows],
    x: Rows,
    marked: list[Start],
    down: Callable[[], Rows],
    norm: Norm,
    room: Room | None,
    generator: torch.Generator,
) -> list[Start]:
    """The starts of a batch of points.

    `marked` are those towards landmarks, `down()` is the direction against the gradient at the points.
    """
    starts: list[Start] = []
    for name in names:
        if isinstance(name, Tensor):
            starts.append(fixed("given", name, norm, room))
        elif name == "zero":
            starts.append(fixed("zero", torch.zeros_like(x), norm, room))
        elif name == "random":
            starts.append(scaled("random", norm.random(x, generator), norm, room))
        elif name == "gradient":
            starts.append(extreme("gradient", down(), norm, room))
        else:
            starts.extend(marked)
    return starts


def fixed(name: str, delta: Rows, norm: Norm, room: Room | None) -> Start:
    """One perturbation at every radius, projected."""
    return Start(name, lambda radius: norm.project(delta, radius, room))


def scaled(name: str, unit: Rows, norm: Norm, room: Room | None) -> Start:
    """A point of the unit ball, scaled with the radius."""
    return Start(name, lambda radius: norm.project(radius * unit, radius, room))


def extreme(name: str, g: Rows, norm: Norm, room: Room | None) -> Start:
    """The extreme point of ball and box along g."""
    return Start(name, lambda radius: norm.extreme(g, radius, room))
