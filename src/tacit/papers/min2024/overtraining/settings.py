"""The settings and the entry of `min2024.overtraining` (torch is not needed here)."""

from dataclasses import dataclass, fields, replace

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive, check_unique
from tacit.papers.min2024.images.settings import Dataset, ImageNets


@dataclass(frozen=True)
class Overtraining(ImageNets):
    """Nets of each p, clean training, looked at after the epochs `at`, the last of which ends the training.

    The first `points` test points are attacked at the radii `linf` and `l2` by `steps` steps of APGD on the
    margin from several starts; the first `certified` of them are certified at the l2 radius `proof`.
    Indicators are read off the other test points, which are not attacked.

    The same on MNIST, where its images are here (`mnist` = false: not): the settings `mnist_...` stand in place
    of those without, and the first `mnist_train` training images are used.
    """

    dataset: Dataset = "digits"
    width: int = 100
    batch: int = 100
    epochs: int = 320
    at: tuple[int, ...] = (5, 10, 20, 40, 80, 160, 320)
    linf: float = 0.15
    l2: float = 0.75
    proof: float = 0.3
    points: int = 200
    steps: int = 30
    certified: int = 20
    repeats: int = 8
    mnist: bool = True
    mnist_train: int = 2000
    mnist_width: int = 100
    mnist_batch: int = 100
    mnist_at: tuple[int, ...] = (5, 10, 20, 40, 80)
    mnist_linf: float = 0.05
    mnist_l2: float = 1.0
    mnist_proof: float = 0.5
    mnist_points: int = 60
    mnist_certified: int = 3
    mnist_repeats: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.p) < 2:
            given = ",".join(f"{p:g}" for p in self.p)
            raise CallError(
                f"p={given}: give at least two values, as in --set p=1,4 (they are compared)"
            )
        check_unique("at", self.at)
        check_positive("at", self.at)
        check_at_least("at", (len(self.at),), 3, "epochs: a best one needs others around it")
        if max(self.at) != self.epochs:
            raise CallError(
                f"epochs={self.epochs} with a last look at {max(self.at)}: end the training at the "
                f"last look, as in --set epochs={max(self.at)}"
            )
        check_positive("certified", (self.certified,))
        for name in ("linf", "l2", "proof"):
            check_positive(name, (getattr(self, name),))
        check_at_least("points", (self.points,), self.certified, "certified")
        check_at_least(
            "repeats", (self.repeats,), 4, "half of the trainings choose an epoch, half judge it"
        )
        if self.mnist and self.dataset == "mnist":
            raise CallError("dataset=mnist with mnist=true: one ground twice; --set mnist=false")
        if self.mnist:
            check_positive("mnist_train", (self.mnist_train,))
            self.on_mnist()

    def on_mnist(self) -> "Overtraining":
        """The settings of the ground MNIST."""
        own = {
            f.name: getattr(self, f"mnist_{f.name}")
            for f in fields(self)
            if hasattr(self, f"mnist_{f.name}")
        }
        return replace(self, **own, dataset="mnist", epochs=max(self.mnist_at), mnist=False)


EXHIBITS = (
    Exhibit(
        id="min2024.overtraining",
        title="When to stop: robust accuracy against epochs, for each p",
        where="Section 5.2.1, Figure 3, and Appendix B, re-examined",
        claim="nets of large p lose robust accuracy after some epoch, and one can see it without an attack",
        scales={
            "smoke": Overtraining(
                p=(1.0, 4.0),
                width=20,
                epochs=6,
                at=(2, 4, 6),
                batch=200,
                points=8,
                steps=3,
                certified=2,
                repeats=4,
                mnist=False,
            ),
            "laptop": Overtraining(),
            "paper": Overtraining(
                points=500,
                steps=100,
                certified=50,
                repeats=10,
                mnist_train=50_000,
                mnist_width=500,
                mnist_batch=1000,
                mnist_at=(2, 5, 8, 12, 20, 30, 40, 51, 75, 102),
                mnist_points=1000,
                mnist_certified=50,
                mnist_repeats=10,
            ),
        },
    ),
)
