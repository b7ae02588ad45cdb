"""The settings and the entry of `min2025.persists` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_clusters, check_positive, check_unique

# .small: from a small init in place of torch's default
MODELS = (
    *("logistic", "tanh", "tanh.small", "relu", "relu.small", "leaky", "gelu", "relu2", "relu2.small"),
    *("relu3", "relu3.small", "decay", "step", "batch", "smoothing", "adam", "poly", "poly.small"),
)  # fmt: skip


@dataclass(frozen=True)
class Persists:
    """One data set a repeat, and every model trained on it.

    `h` is the width of every hidden layer, `n` the training points, `points` the test points that are attacked;
    the first `certified` of them are also certified where a certificate is known. All models take `steps` steps.
    `models` are the ones to train: relu2 and relu3 have two and three hidden layers; decay, step, batch,
    smoothing and adam are ReLU nets trained with that trick.
    """

    K: int = 10
    K1: int = 6
    alpha: float = 0.1
    D: int = 100
    h: int = 100
    n: int = 2000
    steps: int = 800
    points: int = 20
    certified: int = 4
    repeats: int = 4
    models: tuple[str, ...] = MODELS

    def __post_init__(self) -> None:
        check_clusters(self.K, self.K1, self.D)
        check_at_least("K", (self.K,), 3, "at K = 2 the radii 1/sqrt(K) and sqrt(2)/2 are one")
        check_positive("alpha", (self.alpha,))
        check_at_least("n", (self.n,), 100, "batches have 100 points")
        for name in ("h", "steps", "points", "certified", "repeats"):
            check_at_least(name, (getattr(self, name),), 1)
        check_unique("models", self.models)
        unknown = [name for name in self.models if name not in MODELS]
        if unknown or not self.models:
            raise CallError(f"models={','.join(unknown)}: choose from {', '.join(MODELS)}")


SMOKE = Persists(
    K=4, K1=2, D=12, h=10, n=100, steps=30, points=8, certified=4, repeats=1,
    models=("logistic", "relu", "relu2", "decay", "poly.small"),
)  # fmt: skip

EXHIBITS = (
    Exhibit(
        id="min2025.persists",
        title="Which remedies leave the radius of the class averages",
        where="Poster, Observations",
        claim="depth, other activations and training tricks stay near 1/sqrt(K); only PolyReLU p > 2 leaves",
        scales={
            "smoke": SMOKE,
            "laptop": Persists(),
            "paper": Persists(D=1000, h=500, n=20_000, steps=4000, points=500, certified=50),
        },
    ),
)
