r"""Figure 2 (c, d): what 2 labels and k labels learn of frozen embeddings, and how robust either is.

    f_j(z) = (1/h) sum_r relu(<w_jr, z>),   j = 1..k          k labels, cross-entropy
    f(z) = f_+(z) - f_-(z), each a mean of h |J| neurons      2 labels: the first half of the classes, the rest

Both start from the same h k weights. The *equivalent weight* w_j is the mean of h neurons: those of class j, or,
in the 2-label net, the j-th h of them. Entry (i, j) of a matrix is cos(mu_i, w_j), mu_i the mean training
embedding of class i.

The paper takes embeddings as they are (*raw*). They share a large mean, about which the clusters lie in a cone
(`li2025.fig10`); *centred* ones have it taken off, and come closer to the theory's orthogonal clusters. Both are
trained on. The paper names no step and no T for these panels. Here embeddings have root mean square length
sqrt(d), so that Figure 2 (a, b)'s init and steps mean the same. A step ten times as small gives nearly the same
nets at the same eta T (at .6, laptop scale, raw, 2 labels: own cosines .29 to .49 with eta = 1e-2, .29 to .47
with 1e-3; others .08 to .22 and .10 to .23), and what more steps do is shown.

Radii are l2, in units of the embeddings' length: certified from below, attacked from above, exact to 1e-9 for the
2-label net where it merges to few neurons. The k-label net is read as its two classes (Section 4.2).
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from jaxtyping import Bool, Float
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from tacit.certify import radius
from tacit.data import Samples
from tacit.data.images import Features
from tacit.lab import Bench, Outcome
from tacit.nets import MultiClassNet, TwoLayerNet
from tacit.papers._shared.embeddings import Embeddings, class_means, embeddings_of
from tacit.papers.li2025._shared.synthetic import multi_start, train_binary, train_classes
from tacit.papers.li2025.fig2cd.claims import claims
from tacit.papers.li2025.fig2cd.figure import draw
from tacit.papers.li2025.fig2cd.settings import Embedded
from tacit.papers.li2025.fig10.exhibit import READINGS, regime_of, substitute
from tacit.train import Descended

__all__ = ["draw", "run"]

WHERE = "Section 6.1, Figure 2 (c, d)"
UNIFORM = "paper: own-class correlations are uniformly larger than those with the other class"
PROBE_PENALTY = 0.01  # C of scikit-learn's logistic regression, for features of length sqrt(d)


def run(config: Embedded, bench: Bench) -> Outcome:
    """Train both nets on both readings of the embeddings, for each start."""
    bench.tell(substitute(config, bench))
    found = embeddings_of(config, bench)
    seeds = bench.seeds(config.repeats)
    cells = [(reading, seed) for reading in READINGS for seed in seeds]
    parts = [
        bench.part(
            f"{reading}-{seed}", partial(train_and_measure, config, bench, found, reading, seed)
        )
        for reading, seed in bench.steps(cells, "pairs of nets")
    ]
    rows = [parts[i : i + len(seeds)] for i in range(0, len(parts), len(seeds))]
    data: xr.Dataset = xr.combine_nested(rows, concat_dim=["reading", "seed"])
    k = found.classes
    data = data.assign_coords(
        reading=list(READINGS), seed=seeds, net=["two", "many"], T=sorted(config.T),
        side=("feature", labels_of(k).numpy().astype(int)),
    )  # fmt: skip
    nets = {
        f"{name}-{reading}": net
        for (reading, _), part in zip(cells[:: len(seeds)], parts[:: len(seeds)], strict=True)
        for name, net in nets_of(part, k).items()
    }
    apart = ["w_two", "w_many"]
    judge = bench.claims(WHERE, source="words", bar=UNIFORM, regime=regime_of(config))
    return Outcome(data.drop_vars(apart), tuple(claims(data, judge)), nets)


@dataclass(frozen=True)
class Points:
    """Training and test points of length sqrt(d) (root mean square of the training points)."""

    train: Samples
    test: Samples


def points_of(found: Embeddings, reading: str) -> Points:
    """The embeddings as the nets see them, float32."""
    centre = found.train.x.double().mean(0) if reading == "centred" else 0.0
    labels = labels_of(found.classes)
    x, d = found.train.x.double() - centre, found.train.x.shape[1]
    scale = math.sqrt(d) / float(x.square().sum(1).mean().sqrt())

    def scaled(part: Features) -> Samples:
        return Samples((scale * (part.x.double() - centre)).float(), labels[part.y], part.y)

    return Points(scaled(found.train), scaled(found.test))


def labels_of(k: int) -> Float[Tensor, " k"]:
    """+1 for the first half of the classes, -1 for the rest."""
    return torch.tensor([1.0] * (k // 2) + [-1.0] * (k - k // 2), dtype=torch.float64)


def train_and_measure(
    config: Embedded, bench: Bench, found: Embeddings, reading: str, seed: int
) -> xr.Dataset:
    """Both nets from one start, and what is read off them."""
    points, k = points_of(found, reading), found.classes
    mu = class_means(points.train.x, points.train.z)
    start = multi_start(
        points.train.x.shape[1], labels_of(k), config.h, config.init,
        bench.generator("start", seed=seed), torch.float32,
    )  # fmt: skip
    start = replace(start, w=start.w.to(bench.device), labels=start.labels.to(bench.device))
    train, marks = moved(points.train, bench.device), sorted(config.T)
    two = train_binary(two_label_net(start.w, k), train, config.eta, marks[-1], marks)
    many = train_classes(start, train, config.eta, marks[-1], marks)
    test = moved(points.test, bench.device)
    both = [of_net(trained, mu, test, config) for trained in (two, many)]
    classes = many.net.logits(test.x).argmax(-1) == test.z
    dims = {
        "cosine": ("net", "T", "feature", "weight"), "accuracy": ("net", "T"), "loss": ("net", "T"),
        "lower": ("net", "point"), "upper": ("net", "point"),
    }  # fmt: skip
    return xr.Dataset(
        {name: (dim, np.stack([found[name] for found in both])) for name, dim in dims.items()}
        | {
            "class_right": ("image", classes.cpu().numpy()),
            "probe_right": ("image", probe_right(points)),
            "w_two": (("neuron", "dim"), two.net.to("cpu").double().w.numpy()),
            "w_many": (("class", "unit", "dim"), many.net.to("cpu").double().w.numpy()),
        }
    )


def of_net(
    trained: Descended[Any], mu: Float[Tensor, "k d"], test: Samples, config: Embedded
) -> dict[str, npt.NDArray[Any]]:
    """Matrix, accuracy and loss at each T; at the last one the radii of the first points."""
    on_the_way = [moment.net for moment in trained.history]
    few = (t[: config.points].cpu().double() for t in (test.x, test.y))
    found, unit = radius(trained.net.to("cpu").double(), *few), math.sqrt(test.x.shape[1])
    return {
        "cosine": np.stack([matrix_of(net, mu, config.h) for net in on_the_way]),
        "accuracy": np.array([float(right(net, test).double().mean()) for net in on_the_way]),
        "loss": np.array([float(moment.loss) for moment in trained.history]),
        "lower": (found.lower / unit).numpy(),
        "upper": (found.upper / unit).numpy(),
    }


def two_label_net(w: Float[Tensor, "k h d"], k: int) -> TwoLayerNet:
    """f_+ - f_-: the same neurons, each with +-1 over the number of its class's neurons; no biases."""
    labels, h = labels_of(k).to(w), w.shape[1]
    sizes = torch.where(labels > 0, (labels > 0).sum(), (labels < 0).sum())
    return TwoLayerNet(w.flatten(0, 1), (labels / (h * sizes)).repeat_interleave(h), fixed_v=True)


def matrix_of(
    net: TwoLayerNet | MultiClassNet, mu: Float[Tensor, "k d"], h: int
) -> Float[np.ndarray, "k k"]:
    """cos(mu_i, w_j), w_j the mean of h neurons."""
    w = net.w.cpu().double().reshape(len(mu), h, -1).mean(1)
    unit = [t / t.norm(dim=1, keepdim=True) for t in (mu, w)]
    return (unit[0] @ unit[1].T).numpy()


def right(net: TwoLayerNet | MultiClassNet, points: Samples) -> Bool[Tensor, " n"]:
    """y f > 0, f as a classifier of two classes."""
    return points.y * net(points.x) > 0


def probe_right(points: Points) -> Bool[np.ndarray, " n"]:
    """Where logistic regression in k classes is right: what the embeddings offer a linear rule."""
    probe = LogisticRegression(C=PROBE_PENALTY, max_iter=1000, tol=1e-3)
    probe.fit(points.train.x.numpy(), points.train.z.numpy())
    return probe.predict(points.test.x.numpy()) == points.test.z.numpy()


def moved(points: Samples, device: str) -> Samples:
    """On that device."""
    return Samples(*(t.to(device, copy=False) for t in (points.x, points.y, points.z)))


def nets_of(part: xr.Dataset, k: int) -> dict[str, TwoLayerNet | MultiClassNet]:
    """The two nets that a part keeps."""
    two, many = (torch.from_numpy(part[f"w_{name}"].values.copy()) for name in ("two", "many"))
    return {
        "two": two_label_net(two.reshape_as(many), k),
        "many": MultiClassNet(many, labels_of(k)),
    }
