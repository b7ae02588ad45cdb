r"""Whether depth, activation, or the way of training leaves the radius 1/sqrt(K).

The poster: "Vulnerability of ReLU net persists even after: adding layers (MLP), change activations (Tanh,
LogReg)". Every model sees the same mixture, is trained on the mean logistic loss, and is then attacked in l2.

Why 1/sqrt(K)? The largest margin of a *linear* rule on orthonormal centres belongs to sum_k y_k mu_k: each centre
is 1/sqrt(K) from its boundary. With a bias b the margin of the K1 positive centres may be traded for that of the
K2 negative ones; the best radius is 1/sqrt(K - (K1-K2)^2/K), only 2% more at K1 = 6, K2 = 4. A net whose neurons
are class averages has the same radius (min2024, Theorem 1). So a model that stays there does what a linear
rule does. The largest radius of any rule is sqrt(2)/2 (`min2025.robust`).

The poster names logistic regression, tanh and deeper ReLU nets. Leaky ReLU, GELU, and the ways of training
(weight decay, long steps, small batches, smoothed labels, Adam) are ours, as is PolyReLU from torch's init.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor, nn

from tacit.attack import minimal
from tacit.certify.choice import chosen
from tacit.certify.radius import Question
from tacit.data import min2024_mixture
from tacit.lab import Bench, Claim, Expected, Outcome, Part
from tacit.measure import Estimate, mean_of, proportion
from tacit.nets import TwoLayerNet
from tacit.papers._shared.panels import THEORY
from tacit.papers.min2025.persists.settings import MODELS, Persists
from tacit.train import descend

WHERE = "Poster, Observations"
BEST = math.sqrt(0.5)
NEAR = 0.25  # of 1/sqrt(K)
BATCH, STEP = 100, 1.0
SMALL = 0.01  # times torch's default, one hidden layer
DEEP_SMALL = 0.5  # with more layers the start is a flatter saddle: the steps would not leave it
TINY = 1e-7  # PolyReLU: the standard deviation of min2024
SMALL_INIT = ", small init"
WIDEST = 0.8  # radius of the figure

CLEAN = 1000  # points on which each training is counted without an attack
NAMED = ("logistic", "tanh", "relu", "relu2", "relu3")  # by the poster
ACTIVATIONS = {"tanh": nn.Tanh, "ReLU": nn.ReLU, "leaky ReLU": nn.LeakyReLU, "GELU": nn.GELU}


@dataclass(frozen=True)
class Recipe:
    """A model and how it is trained. `init` multiplies torch's default; `p`: a PolyReLU net instead."""

    name: str
    activation: str = "ReLU"
    hidden: int = 1
    init: float = 1.0
    p: float | None = None
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def small(self) -> bool:
        """Whether the init is smaller than torch's."""
        return self.init < 1

    @property
    def row(self) -> str:
        """The name without the init: the row of the figure."""
        return self.name.removesuffix(SMALL_INIT)


def recipes() -> dict[str, Recipe]:
    """By the names of `Persists.models`."""
    shapes = {
        "tanh": ("tanh", 1),
        "relu": ("ReLU", 1),
        "leaky": ("leaky ReLU", 1),
        "gelu": ("GELU", 1),
        "relu2": ("ReLU", 2),
        "relu3": ("ReLU", 3),
    }
    nets = {}
    for key, (activation, hidden) in shapes.items():
        name = activation + (f", {hidden} hidden" if hidden > 1 else "")
        scale = SMALL if hidden == 1 else DEEP_SMALL
        nets[key] = Recipe(name, activation, hidden)
        if f"{key}.small" in MODELS:
            nets[f"{key}.small"] = Recipe(name + SMALL_INIT, activation, hidden, scale)
    return {
        "logistic": Recipe("logistic regression", hidden=0),
        **nets,
        "decay": Recipe("ReLU, weight decay 0.001", training={"weight_decay": 1e-3}),
        "step": Recipe("ReLU, step 4", training={"step": 4.0}),  # from 6 on nothing is learned
        "batch": Recipe("ReLU, batch 5", training={"batch": 5}),
        "smoothing": Recipe("ReLU, label smoothing 0.1", training={"label_smoothing": 0.1}),
        "adam": Recipe("ReLU, Adam", training={"optimizer": "adam", "step": 0.003}),
        "poly": Recipe("PolyReLU p = 3", p=3.0),
        "poly.small": Recipe("PolyReLU p = 3" + SMALL_INIT, p=3.0, init=TINY),
    }


def run(config: Persists, bench: Bench) -> Outcome:
    """Train, attack and certify every model on the data of each seed."""
    models, seeds = config.models, bench.seeds(config.repeats)
    pairs = [(model, seed) for seed in seeds for model in models]
    cells = [
        bench.part(f"{model}.{seed}", partial(measure, config, bench, recipes()[model], seed))
        for model, seed in bench.steps(pairs, "models")
    ]
    by_seed = [cells[start : start + len(models)] for start in range(0, len(cells), len(models))]
    data = xr.concat([xr.concat(row, "model") for row in by_seed], "seed")
    data = data.assign_coords(seed=seeds, model=list(models))
    data["critical"] = data.radius.median("point")
    return Outcome(data, tuple(claims(data, config, bench)))


def claims(data: xr.Dataset, config: Persists, bench: Bench) -> Iterator[Claim]:
    """Models that the poster names, others of our own choice, PolyReLU, and that all of them classify."""
    sizes = f"D = {config.D}, width {config.h}, n = {config.n}, alpha = {config.alpha:g}"
    judge = bench.claims(
        WHERE, source="words", bar="ours: 25% of 1/sqrt(K), a fifth of the way to sqrt(2)/2 at K = 10",
        regime=f"inside: the poster names no sizes; here {sizes}, {config.steps} steps of gradient descent",
    )  # fmt: skip
    edge, models = 1 / math.sqrt(config.K), config.models
    middle = (edge + BEST) / 2
    text = f"every training classifies 99 points of 100, of {CLEAN} (share of trainings)"
    right = data.right >= 0.99 * CLEAN
    clean = proportion(int(right.sum()), right.size, over="trainings")
    yield judge("clean", text, Expected(min=0.9), clean, source="check", bar="ours: nine in ten")
    near = Expected(value=edge, tolerance=NEAR * edge)
    plain = [m for m in models if recipes()[m].p is None]
    named = [m for m in plain if m.removesuffix(".small") in NAMED]
    for id, text, source, shown in (
        ("named", "logistic regression, tanh and deeper ReLU nets stay near 1/sqrt(K)", "words", named),
        ("others", "leaky ReLU, GELU and ways of training stay near 1/sqrt(K)", "ours",
         [m for m in plain if m not in named]),
    ):  # fmt: skip
        found = {m: trainings(data.critical.sel(model=m), of=len(shown)) for m in shown}
        parts = [Part(m, recipes()[m].name, near, estimate) for m, estimate in found.items()]
        if parts:
            yield judge.but(source=source).family(id, text, parts)
    if "poly" in models:
        text = "PolyReLU p = 3 from torch's init: critical radius closer to sqrt(2)/2 than to 1/sqrt(K)"
        yield judge("poly", text, Expected(min=middle), trainings(data.critical.sel(model="poly")), source="ours",
                    bar="ours: the middle", regime="outside: the poster's init is small")  # fmt: skip
    if "poly.small" in models:
        at = data.sel(model="poly.small")
        judge = judge.but(where="min2024, Section 3, Remark 2 (a conjecture)", bar="ours: five percent of it",
                          regime=f"outside: {config.steps} steps, where gradient flow is meant")  # fmt: skip
        text = "PolyReLU p = 3 from a small init: critical radius sqrt(2)/2"
        best = Expected(value=BEST, tolerance=0.05 * BEST)
        yield judge("poly.small", text, best, trainings(at.critical))
        text = "PolyReLU p = 3 from a small init: certified closer to sqrt(2)/2 than to 1/sqrt(K)"
        proved = mean_of(at.lower.median("certified_point"))
        bar = "ours: the middle"
        yield judge("certified", text, Expected(min=middle), proved, source="ours", bar=bar)


def trainings(critical: xr.DataArray, of: int = 1) -> Estimate:
    """The mean over seeds of a training's median radius; one that has learned nothing (inf) counts as 1."""
    return mean_of(critical.clip(max=1), of=of)


def measure(config: Persists, bench: Bench, recipe: Recipe, seed: int) -> xr.Dataset:
    """The loss, the attacked radius of each test point, and certified ones (NaN where none is known)."""
    stream = bench.generator("data", seed=seed)
    mixture = min2024_mixture(config.D, config.K, config.K1, config.alpha, stream)
    train, test, clean = (
        mixture.sample(count, stream) for count in (config.n, config.points, CLEAN)
    )
    x, y, at, label = (t.to(bench.device) for t in (train.x, train.y, test.x, test.y))
    stream = bench.generator(recipe.name, seed=seed)
    start = (poly_start if recipe.p else module_start)(config, recipe, stream, bench.device)
    settings = {"step": STEP, "batch": BATCH, "loss": "logistic", **recipe.training}
    trained = descend(
        start, x, y, steps=config.steps, generator=stream, record=(config.steps,), **settings
    )
    model: Any = trained.net
    if recipe.p is None:
        model.eval().requires_grad_(False)
    with torch.no_grad():
        right = model(clean.x.to(bench.device)).reshape(-1).cpu() * clean.y > 0
    attacked = minimal(model, at, label).radius
    few = slice(config.certified)
    lower = certified(model, at[few], label[few], attacked[few])
    return xr.Dataset(
        {
            "loss": ((), float(trained.history[0].loss)),
            "right": ((), int(right.sum())),
            "radius": (("point",), attacked.cpu().numpy()),
            "lower": (("certified_point",), lower.cpu().numpy()),
        }
    )


def certified(
    model: TwoLayerNet | nn.Module,
    x: Float[Tensor, "n D"],
    y: Float[Tensor, " n"],
    upper: Float[Tensor, " n"],
) -> Float[Tensor, " n"]:
    """Radii that no attack can beat: exact (linear), by CROWN (ReLU), in closed form (PolyReLU); else NaN.

    Branch and bound over a hundred neurons takes a minute, and is not used.
    """
    question = Question(attacked=False, searched=False, upper=upper.cpu())
    _, ends, _ = chosen(model, x, y, question)
    return torch.full_like(y, torch.nan) if ends is None else ends.lower


def module_start(
    config: Persists, recipe: Recipe, generator: torch.Generator, device: str
) -> nn.Module:
    """Linear layers at `init` times torch's default, uniform with bound 1/sqrt(inputs); float64."""
    sizes = [config.D, *[config.h] * recipe.hidden, 1]
    parts: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layer = nn.utils.skip_init(nn.Linear, inputs, outputs, dtype=torch.float64)
        bound = recipe.init / math.sqrt(inputs)
        for parameter in (layer.weight, layer.bias):
            nn.init.uniform_(parameter, -bound, bound, generator)
        parts += [layer, ACTIVATIONS[recipe.activation]()]
    module = nn.Sequential(*parts[:-1]) if recipe.hidden else parts[0]
    return module.to(device)


def poly_start(
    config: Persists, recipe: Recipe, generator: torch.Generator, device: str
) -> TwoLayerNet:
    """Without biases, as in the paper: Gaussian of sd `init` where that is small, else torch's default."""
    shapes = ((config.h, config.D), (config.h,))
    if recipe.small:
        w, v = (
            recipe.init * torch.randn(*shape, generator=generator, dtype=torch.float64)
            for shape in shapes
        )
    else:
        w, v = (
            (2 * torch.rand(*shape, generator=generator, dtype=torch.float64) - 1)
            / math.sqrt(shape[-1])
            for shape in shapes
        )
    return TwoLayerNet(w.to(device), v.to(device), p=recipe.p or 1.0)


def draw(data: xr.Dataset, config: Persists) -> Figure:
    """A row a model: attacked critical radius from both inits, and how much of it is certified."""
    edge = 1 / math.sqrt(config.K)
    shown = {model: recipes()[model] for model in config.models}
    rows = list(dict.fromkeys(recipe.row for recipe in shown.values()))
    figure = Figure(figsize=(7.6, 1.4 + 0.29 * len(rows)))
    axes = figure.subplots()
    axes.axvspan((1 - NEAR) * edge, (1 + NEAR) * edge, color="0.94", linewidth=0, zorder=0)
    for model, recipe in shown.items():
        here = data.sel(model=model)
        found = trainings(here.critical)
        # an untrained model can have any radius, and a single one any interval: they end at the frame
        value, low, high = np.clip((found.value, found.low, found.high), 0, WIDEST)
        paired = sum(other.row == recipe.row for other in shown.values()) > 1
        y = rows.index(recipe.row) + paired * (0.17 if recipe.small else -0.17)
        colour = "C1" if recipe.p else "C2" if recipe.training else "C0"
        face = "white" if recipe.small else colour
        axes.errorbar(
            value, y, xerr=[[max(value - low, 0)], [max(high - value, 0)]], color=colour, markersize=6,
            markerfacecolor=face, capsize=0, zorder=3, fmt="o" if value < WIDEST else ">",
        )  # fmt: skip
        proved = float(np.median(here.lower))
        if proved < WIDEST:  # NaN is not
            axes.plot([proved, value], [y, y], color=colour, linewidth=1, alpha=0.6)
            axes.plot(proved, y, "|", color=colour, markersize=8)
    for at, name in ((edge, r"$1/\sqrt{K}$"), (BEST, r"$\sqrt{2}/2$")):
        axes.axvline(at, **THEORY)
        axes.annotate(
            name, (at, 1.01), xycoords=("data", "axes fraction"), ha="center", va="bottom"
        )
    grey: dict[str, Any] = {"linestyle": "", "color": "0.35"}
    axes.plot([], [], marker="o", label="attacked, torch's init", **grey)
    axes.plot([], [], marker="o", markerfacecolor="white", label="attacked, small init", **grey)
    axes.plot(
        [],
        [],
        marker="|",
        markersize=8,
        label=f"certified ({config.certified} points a run)",
        **grey,
    )
    figure.legend(loc="outside lower center", ncols=3)
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, WIDEST)
    axes.set_xlabel(r"critical $\ell_2$ radius (median over test points, mean over seeds)")
    title = (
        f"$K$ = {config.K} ($K_1$ = {config.K1}), $\\alpha$ = {config.alpha:g}, $D$ = {config.D}"
    )
    axes.set_title(f"{title}, width {config.h}", pad=20)
    return figure
