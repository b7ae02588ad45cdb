"""Each bound of Appendices B and C as a claim, where it could fail; where not, which size it would take.

A bound is *vacuous* where it is above what identities alone allow: a gap of margins above the largest margin, in
one cluster above the largest sigmas (the lambdas cancel), a ratio of derivatives above e to that, a foreign
coefficient above an own one, a product above what Proposition A.6 leaves it. For Lemmas 19, 24 and the lower
line of 20 identities say nothing, for one sigma may carry all of lambda: there it is what property 1 and, at the
end, Lemma 23 allow.

`eps_hat` is the least eps for which everything that the proof of B.7 takes from eps is true of this training
until now: 6 |<w, mu_j> - lambda_j|, 6 |<w, xi_i> - sigma_i|, |q - q_hat|, 6 |b|, and how uneven noises and
clusters are. With it in the place of eps the induction's conclusions are claims about its constants, at an eps
that is larger than the proof's steps allow ((21) needs eps of .0044 or less, with k labels .0011 at k = 3).
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from tacit.lab import Claim, Expected, Judge
from tacit.measure import mean_of
from tacit.papers._shared.universal import for_every
from tacit.papers.li2025._shared.lemmas import Constants, nearest
from tacit.papers.li2025.sweeps.sweep import delta, epsilon

Array = npt.NDArray[np.float64]
KEEPS, ALL = Expected(max=1.0), Expected(min=1.0)
WORDS = {"two": "2 labels", "classes": "k labels"}


class Row(NamedTuple):
    """A bound: id, what is bounded, the bound in words, lemma; what was found, the bound, the most it can be.

    Values are (seed, time). The bound is `per_eps` times eps (nan: not a multiple of it).
    """

    id: str
    name: str
    words: str
    where: str
    found: Array
    bound: Array
    most: Array
    per_eps: float = math.nan
    because: str = ""


@dataclass(frozen=True)
class Size:
    """One net at one size: its readings, called `name` + a variable, as (seed, time), and the sizes."""

    data: xr.Dataset
    name: str
    net: str
    k: int
    d: float
    n: int
    eta: float
    because: str = ""
    uneven: str = ""

    def __getitem__(self, name: str) -> Array:
        """(seed, time), or (seed, 1) of what is once a training."""
        values = self.data[self.name + name].transpose("seed", ...).values
        return np.asarray(values if values.ndim > 1 else values[:, None], dtype=np.float64)

    @property
    def eps(self) -> float:
        """eps of Appendix B.1."""
        return epsilon(self.d, self.k, self.n)

    @property
    def late(self) -> npt.NDArray[np.bool_]:
        """eta t >= 1, where the theorems begin."""
        return np.asarray(self["t"] * self.eta >= 0.99)

    @property
    def hat(self) -> Array:
        """eps_hat until each moment."""
        parts = (
            6 * self["error_feature"],
            6 * self["error_noise"],
            self["error_margin"],
            6 * self["bias"],
        )
        so_far = np.maximum.accumulate(np.max(parts, axis=0), axis=1)
        return np.maximum(so_far, self["uneven"])

    @property
    def words(self) -> str:
        """For statements."""
        return f"{WORDS[self.net]}, n = {self.n:,}, d = {self.d:.3g}"


def induction(of: Size, at: Constants, *, hat: bool = False) -> Iterator[Row]:
    """Properties 2 to 6 and 8 of the induction, and what follows from them: multiples of eps, or of eps_hat."""
    eps, lam = of.hat if hat else np.full_like(of["t"], of.eps), of["lam_most"]
    end = ".hat" if hat else ""
    q = lam + of["sigma_most"] + of["foreign"]
    # in a cluster lambdas cancel, in q_hat and, as ReLU is 1-Lipschitz, in each output: own, then foreign
    same = np.minimum(q, of["sigma_most"] + of["sigma_other"] + 8 * product_most(of))
    with np.errstate(over="ignore"):
        top, top_same = np.expm1(q), np.expm1(same)
    rows = (
        ("2", "gap of q_hat in a cluster", of["gap_hat_same"], at.same, of["sigma_most"]),
        ("3", "gap of q_hat", of["gap_hat"], at.hat, q),
        ("4", "gap of margins", of["gap"], at.gap, q),
        (
            "5",
            "ratio of derivatives in a cluster, less 1",
            of["ratio_same"] - 1,
            at.ratio_same,
            top_same,
        ),
        ("6", "ratio of derivatives, less 1", of["ratio"] - 1, at.ratio, top),
        ("8", "foreign |lambda|", of["lam_other"], 1.0, lam),
        ("8.sigma", "foreign |sigma|", of["sigma_other"], 2.0, of["sigma_most"]),
    )
    for id, name, found, times, most in rows:
        where = f"Lemma {at.induction}, property {id[0]}"
        id = f"{at.induction.replace('.', '')}{end}.{id}"
        yield Row(id, name, f"{times:g} eps", where, found, times * eps, most, times)

    # by Lemma 23 lambda is between ln(eta T)/4 and 4 ln(T + 1) at the end
    last = of["t"][:, -1:]
    window = 16 * np.log1p(last) / np.log(last * of.eta) - 1 + 0 * lam
    spread = np.where(of.late, lam / of["lam_least"] - 1, 0.0)
    name, where = "ratio of own lambdas, less 1, eta t >= 1", f"Lemma {at.letter}.24"
    id, times = f"{at.letter}24{end}", at.spread
    yield Row(id, name, f"{times:g} eps", where, spread, times * eps, window, times)
    if not hat:
        yield from by_sigma(of, at, q)


def by_sigma(of: Size, at: Constants, q: Array) -> Iterator[Row]:
    """Lemmas 19 and 20: sigmas against each other, and margins against a sigma."""
    bound = (1 + at.balance * of.eps) * of["sigma_least"] + 1 / (of.n * of.d)
    most = 2 * of.k / of.n * np.log1p(of["t"])  # property 1
    words, where = f"1 + {at.balance:g} eps of the least and 1/(nd)", f"Lemma {at.letter}.19"
    for id, kept, when in (("", of["t"] >= 1, "t >= 1"), (".late", of.late, "eta t >= 1")):
        found, could = (np.where(kept, values, 0.0) for values in (of["sigma_most"], most))
        name = f"largest own sigma, {when}"
        yield Row(f"{at.letter}19{id}", name, words, where, found, bound, could, because=of.because)
    two, where = np.full_like(q, 2 * of.eps), f"Lemma {at.letter}.20"
    for id, name, found, could in (
        ("", "margin less (2n/k) sigma", of["q_above"], q),
        (".lower", "(n/2k) sigma less margin", of["q_below"], of.n / (2 * of.k) * most),
    ):
        yield Row(f"{at.letter}20{id}", name, "2 eps", where, found, two, could, 2.0)


def clusters_of(of: Size) -> int:
    """Clusters of a neuron's label, at most."""
    return of.k if of.net == "two" else 1


def product_most(of: Size) -> Array:
    """By Proposition A.6 the most by which <w, mu_j> or <w, xi_i> leaves its coefficient."""
    grown = of["lam_most"] + of.n / of.k * of["sigma_most"]
    return np.asarray(delta(of.d) / of.d * clusters_of(of) * grown)


def products(of: Size, at: Constants) -> Iterator[Row]:
    """Lemmas 10 to 14, 17, 18, 25 and 26: biases, products, outputs of other labels, and the weights."""
    eps, one, lam, worst = of.eps, np.ones_like(of["t"]), of["lam_most"], product_most(of)
    foreign, spread = math.sqrt(of.k) * lam, math.sqrt(clusters_of(of)) * lam
    rows = [
        ("11", "|<w, mu_j> - lambda_j|", of["error_feature"], 1 / 6, worst),
        ("12", "|<w, xi_i> - sigma_i|", of["error_noise"], 1 / 6, worst),
        ("13", "|<w, x_i> - lambda - sigma_i|", of["error_point"], 1 / 3, 2 * worst),
        ("14", "|q_i - q_hat_i|", of["error_margin"], 1.0, lam + of["sigma_most"]),
        ("25.L1", "sqrt(d) ||w(0)||", of["L1"], 1.0, np.inf * one),
        ("25.L2", "unequal own lambdas in sqrt(d) w", of["L2"], at.L2, spread),
        ("25.L3", "foreign features in sqrt(d) w", of["L3"], float(of.k), foreign),
        ("26", "|<w, xi>| of fresh noise, at the end", of["fresh"], 1 / 6, worst[:, -1:]),
    ]
    if of.net == "two":
        bias = of.k * lam / of.d + of["bias"][:, :1]  # b - b(0) = sum_j lambda_j / d
        rows.append(("10", "|b|", of["bias"], 1 / 6, bias))
    else:
        rows.append(("17", "outputs of other labels", of["foreign"], 1.0, lam))
    for id, name, found, times, most in sorted(rows, key=lambda row: row[0]):
        bound, where = np.full_like(found, times * eps), f"Lemma {at.letter}.{id.split('.')[0]}"
        if id == "14":  # half of it, by the triangle inequality
            where = f"{where}, Corollary {at.letter}.15"
        yield Row(f"{at.letter}{id}", name, f"{times:.3g} eps", where, found, bound, most, times)

    root, name = np.full_like(lam, math.sqrt(16 * of.k * eps)), "remembered noise in sqrt(d) w"
    where = f"Lemma {at.letter}.25"
    yield Row(f"{at.letter}25.L4", name, "sqrt(16 k eps)", where, of["L4"], root, spread)
    if of.net == "classes":
        name, allowed = (
            "ln of what a ratio of derivatives leaves",
            np.full_like(lam, math.log1p(2 * eps)),
        )
        found = np.maximum(of["order_above"], of["order_below"])
        yield Row("C18", name, "ln(1 + 2 eps)", "Lemma C.18", found, allowed, lam)


def bounds(rows: Iterable[Row], judge: Judge, of: Size) -> Iterator[Claim]:
    """Each bound in all trainings; vacuous where it is nowhere below what could be at most."""
    for row in rows:
        part = xr.DataArray(part_of(row), dims="seed")
        text = f"{row.name}: largest part of its bound ({row.words}), {float(part.max()):.2g}"
        text = f"{text} ({of.words})"
        told, room = judge.but(where=row.where), room_of(row)
        if room > 1:
            yield for_every(told, row.id, text, KEEPS, part, row.because)
            continue
        why = f"{1 / max(room, 1e-300):.2g} times the most there could be; {needed(row, of, room)}"
        found = mean_of(part.values, over="trainings")
        yield told(row.id, text, KEEPS, found, vacuous=f"the bound is {why}")


def part_of(row: Row) -> Array:
    """The largest part of its bound that each training takes."""
    return np.asarray((row.found / row.bound).max(1))


def room_of(row: Row) -> float:
    """What there could be at most, in parts of the bound: the largest of all moments and trainings."""
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(row.most / row.bound))


def needed(row: Row, of: Size, room: float) -> str:
    """The size at which the bound would say something, as far as it can be said."""
    if row.id == "B10":
        lam = 2 / 3 * of.k * math.sqrt(of.d) * math.log(of.d)
        return (
            "b - b(0) is sum_j lambda_j/d, and eps >= 4 k^2 ln d/sqrt(d): only lambda >= "
            f"{lam:.2g}, at eta t near e^{lam:.2g}, could break it"
        )
    if math.isnan(row.per_eps):  # L4, as the root of eps; C.18, about 2 eps; sigmas, 1 + 200 eps
        return f"eps = {of.eps:.2g}, and {nearest(of.eps * room ** (2 if 'L4' in row.id else 1), of.k)}"
    eps = float(row.bound[0, -1]) / row.per_eps
    if ".hat" in row.id:
        return f"with eps_hat = {eps * room:.2g} it would say something, and it is {eps:.2g} here"
    if row.id.endswith((".2", ".5", "8.sigma")):
        share = of.n / of.k
        gap = 2 * row.per_eps * math.log(share) / math.sqrt(share)
        lam = share * (math.log1p(gap) if row.id.endswith(".5") else gap)  # a ratio is 1 + gap
        return (
            "only sigmas can break it, the mean of a cluster's is lambda k/n, and eps >= 2 ln(n/k)/sqrt(n/k): "
            f"with sigmas of the size of their mean it takes lambda near {lam:.2g}, at eta t near e^{lam:.2g}"
        )
    return f"eps = {eps:.2g}, and {nearest(eps * room, of.k)}"


def unconditional(of: Size, at: Constants, judge: Judge) -> Iterator[Claim]:
    """Properties 1 and 7, and lambda's window: no eps in them."""
    t, share = of["t"], of.k / of.n
    judge = judge.but(where=f"Lemma {at.induction}")
    id = at.induction.replace(".", "")
    low, high = (1 / 3, 2.0) if of.net == "two" else (1 / 2, 2.0 * of.k)
    # Lemma B.9 is what property 7 leaves of the recursions: no indicator
    first = "B.1, B.9" if of.net == "two" else "C.5"
    rows = (
        (f"{at.letter}21", f"largest |l'| over {high:g} exp(-(n/2k) sigma)", KEEPS,
         np.exp(of["pull_above"]).max(1) / high, f"Lemma {at.letter}.21", of.uneven),
        (f"{at.letter}21.lower", f"least |l'| over {low:.3g} exp(-(2n/k) sigma)", ALL,
         np.exp(of["pull_below"]).min(1) / low, f"Lemma {at.letter}.21", of.uneven),
        (f"{id}.1", "property 1: largest sigma over (2k/n) ln(t + 1)", KEEPS,
         (of["sigma_most"] / (2 * share * np.log1p(t))).max(1), "", of.uneven),
        (f"{id}.1.lower", "property 1: least sigma n/k - ln(eta t)/2", Expected(min=0.0),
         (of["sigma_least"] / share - np.log(t * of.eta) / 2).min(1), "", of.uneven),
        (f"{id}.7", "property 7: least share of active pairs of a neuron and a point of its label, t >= 1", ALL,
         of["own_active"].min(1), f"Lemmas {at.induction}, {first}", of.because),
        (f"{id}.7.late", "property 7: the same from eta t = 1 on", ALL,
         np.where(of.late, of["own_active"], 1.0).min(1), "", ""),
        (f"{at.letter}23", "largest own lambda over 4 ln(t + 1), eta t >= 1", KEEPS,
         np.where(of.late, of["lam_most"] / (4 * np.log1p(t)), 0.0).max(1), f"Lemma {at.letter}.23", ""),
        (f"{at.letter}23.lower", "least own lambda - ln(eta t)/4, eta t >= 1", Expected(min=0.0),
         np.where(of.late, of["lam_least"] - np.log(t * of.eta) / 4, np.inf).min(1), f"Lemma {at.letter}.23", ""),
    )  # fmt: skip
    for name, text, expected, values, where, because in rows:
        told, found = judge.but(where=where), xr.DataArray(values, dims="seed")
        yield for_every(told, name, f"{text} ({of.words})", expected, found, because)
