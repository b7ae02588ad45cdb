"""The settings and the entry of `allenzhu2020.fig3` (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab import Exhibit
from tacit.papers._shared.checks import (
    check_at_least,
    check_at_most,
    check_positive,
    check_unique,
)


@dataclass(frozen=True)
class WarmUp:
    """Section 3 in closed form, for each dimension in `d`, with k = d^`power`.

    z has |z_i| = 1 with probability 2/d, uniform on [1, 1.5]/sqrt(k) with probability .4 k/d. `points` are those
    whose radii are found, in `blocks` that give an exponent its interval; `samples` those on which accuracies are
    counted, for each `sigma_x`; polynomials have the odd `degrees`, and are fitted to as many. `fact` are the
    dimensions at which Fact 2.2 is computed.
    """

    d: tuple[int, ...] = (100, 300, 1000, 3000, 10_000)
    power: float = 0.36
    sigma_x: tuple[float, ...] = (0.5, 1.0, 3.0, 10.0)
    degrees: tuple[int, ...] = (1, 3, 5, 7)
    points: int = 320
    blocks: int = 8
    samples: int = 2000
    fact: tuple[int, ...] = (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000)

    def __post_init__(self) -> None:
        check_at_least("d", self.d, 16)
        check_unique("d", self.d)
        if len(self.d) < 2:
            raise CallError(f"d={self.d[0]}: an order in d needs two, as in --set d=100,1000")
        check_at_least("power", (self.power,), 0.1)
        check_at_most("power", (self.power,), 0.499, "Section 2: k <= d^0.499")
        check_positive("sigma_x", self.sigma_x)
        check_unique("sigma_x", self.sigma_x)
        if not self.degrees or any(degree < 1 or degree % 2 == 0 for degree in self.degrees):
            raise CallError(f"degrees={self.degrees}: odd numbers; the labels are odd in z")
        if list(self.degrees) != sorted(set(self.degrees)):
            raise CallError(f"degrees={self.degrees}: ascending, each once")
        check_at_least("blocks", (self.blocks,), 2, "their spread gives an interval")
        check_at_least("points", (self.points,), 4 * self.blocks)
        check_at_least("samples", (self.samples,), 50)
        check_at_least("fact", self.fact, 16)

    def k(self, d: int) -> float:
        """The sparsity in dimension d."""
        return float(d**self.power)


EXHIBITS = (
    Exhibit(
        id="allenzhu2020.fig3",
        title="Linear models are fragile, thresholded ones are not",
        where="Section 3, Figure 3; Fact 2.2; footnote 3",
        claim="no linear model is robust at 1/sqrt(d); zeroing out small features is robust at o(1/sqrt(k))",
        scales={
            "smoke": WarmUp(
                d=(50, 200),
                sigma_x=(1.0,),
                degrees=(1, 3),
                points=24,
                blocks=2,
                samples=100,
                fact=(100, 10_000, 10_000_000),
            ),
            "laptop": WarmUp(),
            "paper": WarmUp(d=(100, 300, 1000, 3000, 10_000, 30_000), points=4000, samples=20_000),
        },
    ),
)
