"""Settings shared by exhibits (without torch)."""

from dataclasses import dataclass

from tacit.errors import CallError
from tacit.lab.settings import as_text
from tacit.papers._shared.checks import check_at_least, check_clusters, check_positive, check_unique


@dataclass(frozen=True)
class Sweep:
    """One setting (d0, k0, n0, time 1), and sweeps of each of d, k, n and time = eta t, the others fixed.

    Half of the clusters are positive. `m` neurons of either sign (binary), `h` a cluster (multi-class);
    `steps` steps of size `eta`, then growing ones. `points` test points get a radius, `test` a clean label.
    `starts` short trainings (multi-class) count the labels that die.
    """

    d0: int = 4096
    k0: int = 10
    n0: int = 400
    d: tuple[int, ...] = (512, 2048, 8192, 32768)
    k: tuple[int, ...] = (4, 8, 16, 32)
    n: tuple[int, ...] = (100, 200, 400, 800)
    time: tuple[float, ...] = (0.1, 0.3, 1.0, 10.0, 1e3, 1e5)
    m: int = 5
    h: int = 3
    eta: float = 1e-3
    steps: int = 1000
    sigma_w: float = 1e-5
    points: int = 100
    test: int = 5000
    repeats: int = 3
    starts: int = 1000

    def __post_init__(self) -> None:
        for name in ("d", "k", "n", "time"):
            values = getattr(self, name)
            if len(values) < 2:
                raise CallError(f"{name}={as_text(values)}: a slope needs two values or more")
            check_positive(name, values)
            check_unique(name, values)
            if list(values) != sorted(values):
                raise CallError(f"{name}={as_text(values)}: from small to large")
        for key, counts in (("k0", (self.k0,)), ("k", self.k)):
            for k in counts:
                check_clusters(k, k // 2, self.d0, names=(key, "k1", "d0"))
        most = 2 * max(self.k0, *self.k)
        for key, sizes in (("n0", (self.n0,)), ("n", self.n)):
            check_at_least(key, sizes, most, "two points a cluster, for the most clusters")
        if 1.0 not in self.time:
            raise CallError(
                f"time={as_text(self.time)}: 1 must be among them (eta T = 1, the base of all sweeps)"
            )
        for name in ("m", "h", "steps", "points", "test", "starts"):
            check_at_least(name, (getattr(self, name),), 1)
        check_at_least("repeats", (self.repeats,), 2, "intervals are over seeds")
        check_positive("eta", (self.eta,))
        check_at_least("sigma_w", (self.sigma_w,), 0, "a standard deviation is not negative")
        rows = max(2 * self.m, self.h * max(self.k0, *self.k))
        check_at_least(
            "d", (min(self.d0, *self.d),), self.n0 + rows + self.k0, "n0 + neurons + k0: the span"
        )
        most = max(self.n0, *self.n) + rows + max(self.k)
        check_at_least("d0", (self.d0,), most, "n + neurons + k: the span")


SMOKE = Sweep(
    d0=256, k0=4, n0=40, d=(256, 512), k=(2, 4), n=(40, 80), time=(0.1, 1.0, 10.0), steps=100, eta=1e-2, points=6,
    test=200, repeats=2,
)  # fmt: skip
PAPER = Sweep(
    d0=8192, n0=1000, d=(2048, 4096, 8192, 16384, 32768), k=(4, 8, 16, 32, 64), n=(250, 500, 1000, 2000),
    time=(0.1, 0.3, 1.0, 10.0, 1e3, 1e5, 1e8), points=500, test=50_000, repeats=5,
)  # fmt: skip
