r"""The remarks after Example 1: what is left of Theorems 3.1 and 4.2 where an assumption is given up.

- *Norms*: "the assumption that ||mu|| is exactly sqrt(d) ... may be relaxed (to have all cluster means
  approximately of the same norm) without affecting our results significantly."
- *Noise*: any law with <xi, e> = O~(1) for every unit vector e and ||xi|| = O~(sqrt(d)), w.h.p.: here independent
  uniform or Laplace coordinates, the sphere, and a Gaussian that is louder along the means. Coordinates of
  Student's law with 4 degrees of freedom are not of this kind: their tail is a power.
- *sigma > 1*: "if k = O~(1) and the means' products are O~(sqrt(d)), Theorem 3.1 can be extended to sigma =
  O~(d^(1/8))." d^(1/4) is beyond.

Measured are the trained nets' errors, what z = eta sum y mu does to them, and which of P1 to P6, with the paper's
constants, the data sets satisfy. The means lie along axes, where other noise differs most from Gaussian noise.

**What class averages predict.** With orthogonal means of any norms v_j w_j = sum_q mu_q / ||mu_q||^2, so that
y N(x - y eta u) = 1 - eta k: the eta that flips half of the points is 1/k, whatever the norms and the noise.
"""

import math
from functools import partial

import numpy as np
import torch
import xarray as xr

from tacit.attack import frei2023_z
from tacit.data import Samples
from tacit.lab import Bench, Outcome
from tacit.papers._shared.assumptions import assumption_line, check_assumption, sample_properties
from tacit.papers.frei2023._shared.trained import (
    Setting,
    all_flowed,
    flip_etas,
    stacked,
    start,
)
from tacit.papers.frei2023.remarks.cases import Case, cases, drawn, mixture_of
from tacit.papers.frei2023.remarks.claims import claims
from tacit.papers.frei2023.remarks.figure import draw as draw
from tacit.papers.frei2023.remarks.settings import Remarks

INIT = 1e-6
TWICE = 2.0  # times ||u||/k
PROPERTIES = ("P1", "P2", "P3", "P4", "P5", "P6")


def run(config: Remarks, bench: Bench) -> Outcome:
    """Case by case; the data sets of a case are trained together."""
    every = cases(config)
    found = [
        bench.part(f"{case.kind}.{case.name}.{case.d}", partial(measure, case, config, bench))
        for case in bench.steps(every, "cases")
    ]
    data = xr.concat(found, "case").assign_coords(
        kind=("case", [case.kind for case in every]),
        name=("case", [case.name for case in every]),
        d=("case", [case.d for case in every]),
        seed=bench.seeds(config.repeats),
        property=list(PROPERTIES),
    )
    return Outcome(data, claims(data, config, bench))


def measure(case: Case, config: Remarks, bench: Bench) -> xr.Dataset:
    """Errors, etas and P1 to P6 of each data set; NaN for nets whose loss did not fall below 1/n."""
    mixture = mixture_of(case)
    bench.tell(assumption_line(mixture))
    setting = Setting(
        case.d, case.k, case.k // 2, case.sigma, INIT, config.log_loss, config.h, scout=False
    )
    label = (case.kind, case.name, case.d)
    sets, begins = [], []
    for seed in bench.seeds(config.repeats):
        sets.append(drawn(case, mixture, case.n, bench.generator("data", *label, seed=seed)))
        begins.append(start(case.d, config.h, INIT, bench.generator("start", *label, seed=seed)))
    together = Samples(*(torch.stack([getattr(s, name) for s in sets]) for name in ("x", "y", "z")))
    ends = all_flowed(stacked(begins), together, setting, bench.device)
    u = frei2023_z(mixture)
    rows, worst = [], []
    for seed, train, (net, log_loss) in zip(bench.seeds(config.repeats), sets, ends, strict=True):
        test = drawn(case, mixture, config.tests, bench.generator("test", *label, seed=seed))
        net = net.double()
        etas = flip_etas(net, test.x, test.y, net.w @ u)
        right = etas > 0
        late = (etas > TWICE / case.k) & right
        row = [float((~right).sum()), float((late | ~right).sum()), float(etas.median()) * case.k]
        rows.append(row if log_loss < -math.log(case.n) else [math.nan] * 3)
        found = sample_properties(mixture, train)
        worst.append([found[name].worst for name in PROPERTIES])
    columns = np.array(rows).T
    return xr.Dataset(
        {
            **{name: (("seed",), c) for name, c in zip(("wrong", "kept", "eta_k"), columns, strict=True)},
            "worst": (("seed", "property"), np.array(worst)),
            "inside": ((), check_assumption(mixture).holds),
            "separated": ((), check_assumption(mixture).separated),
        }
    )  # fmt: skip
