"""Lemma 5, on which Theorem 2 rests: g_p(q) = (sum_i z_i^q)(sum_i z_i^(p+1-q)), (56), is convex in q.

Printed: convex on R for nonnegative z; strictly so, with its minimum at q* = (p+1)/2, where z_i != z_j for some
i, j. That is true of positive z, by g'' = sum_ij z_i^q z_j^(p+1-q) (log z_i - log z_j)^2. A zero among the z_i
adds nothing for 0 < q < p + 1: so z = (1, 0), whose entries differ, has g_p(q) = 1 there.

Measured by second differences of (56) itself, not by that formula.
"""

from collections.abc import Iterator, Sequence

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from tacit.base.estimate import Certain
from tacit.lab import Claim, Expected, Judge
from tacit.papers._shared.universal import for_every

WHERE = "Appendix D.2, Lemma 5, (56)"
STEP = 0.05  # of the second differences
ROUNDING = 1e-9  # of them: 1e-16 over the square of the step, and of sums
STRICT = 1e-6
LARGEST = 8  # numbers z_i of a draw, at most
ZERO = "z = (1, 0) has different entries and g_p(q) = 1 for every 0 < q < p + 1 (errata: Lemma 5)"


def product(z: Float[Tensor, "m n"], p: float, q: Float[Tensor, " k"]) -> Float[Tensor, "m k"]:
    """g_p(q; z), (56), for each row of z."""
    bases = z.unsqueeze(2)
    return (bases**q).sum(1) * (bases ** (p + 1 - q)).sum(1)


def bend(z: Float[Tensor, "m n"], p: float, q: Float[Tensor, " k"]) -> Float[Tensor, " m"]:
    """The least second difference of g_p over the square of the step and over g_p(q), of each row."""
    left, middle, right = (product(z, p, q + STEP * side) for side in (-1, 0, 1))
    return ((left + right - 2 * middle) / middle / STEP**2).amin(1)


def dip(z: Float[Tensor, "m n"], p: float, q: Float[Tensor, " k"]) -> Float[Tensor, " m"]:
    """The least g_p(q)/g_p(q*) - 1 over q other than q* = (p+1)/2, of each row."""
    middle = product(z, p, torch.tensor([(p + 1) / 2], dtype=torch.float64))
    away = q[(q - (p + 1) / 2).abs() > STEP]
    return (product(z, p, away) / middle - 1).amin(1)


def measured(powers: Sequence[float], draws: int, generator: torch.Generator) -> xr.Dataset:
    """Over p and q, the worst of each of so many random positive z, and of z = (1, 0)."""
    bends, dips, flat = [], [], []
    for n in range(2, LARGEST + 1):
        z = 0.05 + 0.95 * torch.rand(draws, n, generator=generator, dtype=torch.float64)
        here = [(z, p, torch.linspace(-3, p + 4, 141, dtype=torch.float64)) for p in powers]
        bends.append(torch.stack([bend(*each) for each in here]).amin(0))
        dips.append(torch.stack([dip(*each) for each in here]).amin(0))
    one = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    for p in powers:
        inside = torch.linspace(2 * STEP, p + 1 - 2 * STEP, 41, dtype=torch.float64)
        flat.append(bend(one, p, inside))
    return xr.Dataset(
        {
            "lemma5_bend": (("draw",), torch.cat(bends).numpy()),
            "lemma5_dip": (("draw",), torch.cat(dips).numpy()),
            "lemma5_zero": ((), float(torch.cat(flat).min())),
        }
    )


def lemma5_claims(data: xr.Dataset, judge: Judge) -> Iterator[Claim]:
    """Convex, least at q*, strictly convex: as printed, and for positive z."""
    regime = "inside: every p of the exhibit, q from -3 to p + 4, 2 to 8 positive numbers"
    judge = judge.but(
        where=WHERE, source="formula", bar="paper: the sign, to rounding", regime=regime
    )
    text = "g_p is convex (least second difference, relative)"
    yield for_every(
        judge, "lemma5.convex", text, Expected(min=-ROUNDING), data.lemma5_bend, over="draws"
    )
    text = "g_p is least at q* = (p+1)/2 (least of g_p(q)/g_p(q*) - 1 elsewhere)"
    yield for_every(judge, "lemma5.minimum", text, Expected(min=0.0), data.lemma5_dip, over="draws")
    text = "g_p is strictly convex where z_i != z_j for some i, j (second difference at z = (1, 0))"
    flat = Certain(float(data.lemma5_zero), "one z is a counterexample, or shows nothing else")
    yield judge("lemma5.strict", text, Expected(min=STRICT), flat, because=ZERO, any_size=True,
                regime="inside: z = (1, 0), 0 < q < p + 1")  # fmt: skip
    text = "g_p is strictly convex for positive z that differ (least second difference, relative)"
    ours = judge.but(source="ours", bar="derived: g'' in the file's docstring")
    yield for_every(
        ours, "lemma5.positive", text, Expected(min=STRICT), data.lemma5_bend, over="draws"
    )
