r"""Samples of the sparse coding model (allenzhu2020, Section 2).

    x = M z + xi,   xi = xi' + M xi'',   xi' ~ N(0, sigma_x^2/d I),   y = sign <w*, z>,  sign(0) = +1

z has independent coordinates of one `HiddenLaw`. Only its nonzero entries are drawn: the gaps between them in a
long row of coin tosses of probability p are geometric, so their positions are cumulated gaps, and a batch costs
n d p draws in place of n d.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.base.checks import check_finite
from tacit.data.sparse_coding.law import Assumption21, HiddenLaw, Spike
from tacit.errors import CallError

CHUNK = 4096  # rows drawn at once where a stream is asked for
RAREST = 1e-4  # of the rows must meet the margin, or drawing again takes too long
TRIES = 200_000  # rows drawn before that is said


class SparseCodingWarning(UserWarning):
    """The setting is outside what the paper assumes; says of which assumption, and what follows."""


@dataclass(frozen=True)
class SparseSamples:
    """Points x, labels y in {-1, +1} and the hidden vectors z."""

    x: Float[Tensor, "n d"]
    y: Float[Tensor, " n"]
    z: Float[Tensor, "n D"]


@dataclass(frozen=True)
class SparseCoding:
    """M (d, D), w* (D,), the law of z, k, sigma_x, spikes (in the dictionary's coordinates) or none.

    `margin` > 0 redraws z until |<w*, z>| >= margin. This is an addition of ours, not in the paper: without it
    the mass near the boundary caps robust accuracy at small d, and with it the coordinates of z are no longer
    independent, so Assumption 2.1 is broken.
    """

    M: Float[Tensor, "d D"]
    w_star: Float[Tensor, " D"]
    law: HiddenLaw
    k: float
    sigma_x: float = 0.0
    spike: Spike | None = None
    margin: float = 0.0

    @property
    def d(self) -> int:
        """The dimension of x."""
        return self.M.shape[0]

    @property
    def D(self) -> int:
        """The number of features."""
        return self.M.shape[1]

    def sample(
        self, n: int, generator: torch.Generator, *, dtype: torch.dtype = torch.float64
    ) -> SparseSamples:
        """n independent points; taken twice or more they are a stream of fresh ones."""
        if n < 1:
            raise CallError(f"n={n}: at least one point is needed")
        z, y = self.hidden(n, generator, dtype)
        here = z
        if self.spike is not None:
            rare = self.spike.probability
            signs = signed_entries(n, self.D, rare, generator, dtype)
            here = z + scattered(*signs, n, self.D).mul_(self.spike.size)
        x = here @ self.M.to(generator.device, dtype).T
        if self.sigma_x:
            noise = torch.randn(n, self.d, generator=generator, dtype=dtype, device=x.device)
            x.add_(noise, alpha=self.sigma_x / math.sqrt(self.d))
        return SparseSamples(x, y, z)

    def stream(
        self,
        batch: int,
        generator: torch.Generator,
        *,
        dtype: torch.dtype = torch.float64,
        steps: int | None = None,
    ) -> Iterator[tuple[Float[Tensor, "batch d"], Float[Tensor, " batch"]]]:
        """Fresh batches (x, y), without end or `steps` of them; several are drawn at once."""
        together, left = max(1, CHUNK // batch), math.inf if steps is None else steps
        # where they are needed, once: a large M takes longer to bring there than a batch to draw
        M, w_star = (t.to(generator.device, dtype) for t in (self.M, self.w_star))
        here = replace(self, M=M, w_star=w_star)
        while left > 0:
            count = int(min(together, left))
            drawn = here.sample(count * batch, generator, dtype=dtype)
            yield from zip(drawn.x.split(batch), drawn.y.split(batch), strict=True)
            left -= count

    def hidden(
        self, n: int, generator: torch.Generator, dtype: torch.dtype = torch.float64
    ) -> tuple[Float[Tensor, "n D"], Float[Tensor, " n"]]:
        """z and sign <w*, z>, redrawn where the margin is not met."""
        w_star = self.w_star.to(generator.device, dtype)
        kept: list[Tensor] = []
        have = drawn = 0
        while have < n:
            more = (
                n
                if not self.margin
                else max(256, int(1.1 * (n - have) * max(drawn, 1) / max(have, 1)))
            )
            z = self.drawn(min(more, 4 * max(n, CHUNK)), generator, dtype)
            drawn += len(z)
            if self.margin:
                z = z[(z @ w_star).abs() >= self.margin]
            kept.append(z)
            have += len(z)
            if drawn > TRIES and have < RAREST * drawn:
                raise CallError(
                    f"margin={self.margin:g}: {have} of {drawn} hidden vectors have |<w*, z>| that large; "
                    "lower the margin or make z less sparse"
                )
        z = (torch.cat(kept) if len(kept) > 1 else kept[0])[:n]
        y = torch.where(z @ w_star >= 0, 1.0, -1.0).to(dtype)
        return z, y

    def drawn(self, n: int, generator: torch.Generator, dtype: torch.dtype) -> Float[Tensor, "n D"]:
        """z without the margin."""
        at, sign = signed_entries(n, self.D, self.law.nonzero, generator, dtype)
        u = torch.rand(2, len(at), generator=generator, dtype=dtype, device=at.device)
        low, wide, edges = pieces_of(self.law, at.device, dtype)
        which = torch.searchsorted(edges, u[0].contiguous(), right=True).clamp_max_(len(low) - 1)
        return scattered(at, sign * torch.addcmul(low[which], wide[which], u[1]), n, self.D)


def sparse_coding(
    M: Float[Tensor, "d D"],
    law: HiddenLaw,
    k: float,
    *,
    w_star: Float[Tensor, " D"] | None = None,
    sigma_x: float = 0.0,
    spike: Spike | None = None,
    spike_constant: float = 1.0,
    margin: float = 0.0,
    constants: Assumption21 | None = None,
) -> SparseCoding:
    """The model, checked against Section 2: a call error names the condition that is broken, and by how much.

    `w_star` is all ones by default (the sign of a feature can be moved into M_j). k > d^0.499 is a warning.
    """
    made = checked_model(M, law, k, w_star, sigma_x, spike, spike_constant, margin, constants)
    if line := too_dense(M.shape[0], k):
        warnings.warn(line, SparseCodingWarning, stacklevel=2)
    return made


def checked_model(
    M: Float[Tensor, "d D"],
    law: HiddenLaw,
    k: float,
    w_star: Float[Tensor, " D"] | None,
    sigma_x: float,
    spike: Spike | None,
    spike_constant: float,
    margin: float,
    constants: Assumption21 | None,
) -> SparseCoding:
    """The same without the warning, for threads: Python's filters of warnings are shared by all of them."""
    d, D = M.shape
    check_finite("M", M, remedy="a dictionary has finite entries")
    if not bool((M.norm(dim=0) > 0).all()):
        raise CallError("M has a column of zeros: every feature needs a direction")
    if not 1 <= k <= d:
        raise CallError(f"k={k:g} with d={d}: the sparsity lies between 1 and d")
    if not (sigma_x >= 0 and math.isfinite(sigma_x)):
        raise CallError(f"sigma_x={sigma_x:g}: it is a finite number >= 0")
    if not (margin >= 0 and math.isfinite(margin)):
        raise CallError(f"margin={margin:g}: it is a finite number >= 0")
    star = torch.ones(D, dtype=torch.float64) if w_star is None else w_star.to(torch.float64)
    check_finite("w_star", star, remedy="|w*_i| = Theta(1)")
    if star.shape != (D,) or not bool((star != 0).all()):
        raise CallError(f"w_star: {D} numbers that are not 0 are needed, one for each feature")
    broken = law.broken(d, k, constants or Assumption21())
    if spike is not None:
        broken += spike.broken(d, k, sigma_x, spike_constant)
    if broken:
        raise CallError(
            f"Assumption 2.1 with d={d}, k={k:g}: {'; '.join(broken)}. Change the law, or name other constants"
        )
    return SparseCoding(M.to(torch.float64), star, law, float(k), sigma_x, spike, margin)


def too_dense(d: int, k: float) -> str:
    """What follows from a k that Section 2 does not allow; empty where it does."""
    if k <= d**0.499:
        return ""
    return (
        f"k={k:g} > d^0.499 = {d**0.499:.4g}: Section 2 assumes the contrary. The mixture of size (k/d)||x|| "
        "that clean training hides is then above 1/k on clean points (Section 6.2), and no theorem applies"
    )


def signed_entries(
    n: int, D: int, p: float, generator: torch.Generator, dtype: torch.dtype
) -> tuple[Int[Tensor, " hits"], Float[Tensor, " hits"]]:
    """The places of an n x D table that independent coins of probability p hit, in order, each with a sign."""
    at = hits(n * D, p, generator)
    coin = torch.rand(len(at), generator=generator, dtype=dtype, device=at.device)
    return at, torch.where(coin < 0.5, -1.0, 1.0).to(dtype)


def hits(length: int, p: float, generator: torch.Generator) -> Int[Tensor, " hits"]:
    """Where coins of probability p fall in a row of tosses: the gaps are 1 + floor(log u / log(1 - p))."""
    device = generator.device
    if p >= 1:
        return torch.arange(length, device=device)
    parts, last = [], -1
    while last < length:
        expected = (length - last) * p
        count = int(expected + 6 * math.sqrt(expected) + 8)
        # 1 - u lies in (0, 1]: no logarithm of 0
        u = 1 - torch.rand(count, generator=generator, dtype=torch.float64, device=device)
        gaps = (u.log() / math.log1p(-p)).floor_().clamp_max_(length + 1.0).long() + 1
        parts.append(gaps.cumsum(0) + last)
        last = int(parts[-1][-1])
    found = torch.cat(parts)
    return found[found < length]


def scattered(
    at: Int[Tensor, " hits"], value: Float[Tensor, " hits"], n: int, D: int
) -> Float[Tensor, "n D"]:
    """The table with these values in these places."""
    table = value.new_zeros(n * D)
    table[at] = value
    return table.view(n, D)


def pieces_of(
    law: HiddenLaw, device: torch.device, dtype: torch.dtype
) -> tuple[Float[Tensor, " P"], Float[Tensor, " P"], Float[Tensor, " P"]]:
    """Low ends, widths, and the cumulated shares of the pieces among the nonzero values."""
    low, wide, share = (
        torch.tensor(column, device=device, dtype=dtype)
        for column in zip(
            *((p.low, p.high - p.low, p.probability / law.nonzero) for p in law.pieces), strict=True
        )
    )
    return low, wide, share.cumsum(0)
