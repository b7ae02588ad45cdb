"""The sparse coding model: its law against Monte Carlo and brute force, its checks, its geometry."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.sparse_coding import (
    Assumption21,
    HiddenLaw,
    Piece,
    SparseCodingWarning,
    Spike,
    block_dictionary,
    coherence,
    identity_dictionary,
    incoherent_dictionary,
    matrix_norms,
    sparse_coding,
    two_level_law,
    unitary_dictionary,
)
from tacit.data.sparse_coding.model import hits
from tacit.errors import CallError


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


D, K = 100, 5
LAW = two_level_law(D, K)


def test_the_law_has_the_moments_of_its_formula() -> None:
    wanted = (2 + 0.4 * (1 + 1.5 + 2.25) / 3) / D
    assert pytest.approx(wanted, rel=1e-12) == LAW.second_moment
    assert LAW.within(1, 1) == pytest.approx(2 / D)
    least = 1 / math.sqrt(K)
    assert LAW.within(least, 1.25 * least) == pytest.approx(0.2 * K / D)


def test_samples_have_the_law_of_each_coordinate() -> None:
    n = 20_000
    z = sparse_coding(torch.eye(D, dtype=torch.float64), LAW, K).sample(n, seeded()).z
    size = z.abs()
    cells = n * D
    for low, high in ((0.999, 1.001), (1 / math.sqrt(K), 1.25 / math.sqrt(K)), (0, 1e-9)):
        p = 1 - LAW.nonzero if low == 0 else LAW.within(low, high)
        share = float(((size >= low) & (size <= high)).double().mean())
        assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / cells)
    hit = z != 0
    assert abs(float((z[hit] > 0).double().mean()) - 0.5) < 5 * 0.5 / math.sqrt(int(hit.sum()))
    # E z^2 to five standard errors, of at most sqrt(E z^4) <= sqrt(E z^2)
    assert abs(float(z.square().mean()) - LAW.second_moment) < 5 * math.sqrt(
        LAW.second_moment / cells
    )
    # coordinates are independent: counts of nonzeros are binomial
    counts = hit.sum(1).double()
    p = LAW.nonzero
    assert abs(float(counts.var()) - D * p * (1 - p)) < 0.05 * D * p


@given(st.integers(1, 400), st.floats(0.001, 1.0), st.integers(0, 5))
def test_hits_are_places_in_order(length: int, p: float, seed: int) -> None:
    at = hits(length, p, seeded(seed))
    assert bool((at[1:] > at[:-1]).all())
    assert len(at) == 0 or (int(at[0]) >= 0 and int(at[-1]) < length)


def test_hits_are_coin_tosses() -> None:
    """Every place with the same probability, neighbours independent, against five standard errors."""
    length, p, runs = 12, 0.3, 20_000
    table = torch.zeros(runs * length)
    table[hits(runs * length, p, seeded(3))] = 1
    table = table.view(runs, length)
    assert bool(((table.mean(0) - p).abs() < 5 * math.sqrt(p * (1 - p) / runs)).all())
    both = (table[:, 1:] * table[:, :-1]).mean()
    assert abs(float(both) - p * p) < 5 * p / math.sqrt(runs * (length - 1))


def test_points_are_what_the_model_says() -> None:
    M = unitary_dictionary(30, 20, seeded(1))
    star = torch.linspace(0.5, 2, 20, dtype=torch.float64) * torch.tensor([1.0, -1.0] * 10)
    plain = sparse_coding(M, two_level_law(30, 3), 3, w_star=star)
    s = plain.sample(500, seeded(2))
    torch.testing.assert_close(s.x, s.z @ M.T)
    assert torch.equal(s.y, torch.where(s.z @ star >= 0, 1.0, -1.0).double())
    noisy = replace(plain, sigma_x=0.6).sample(4000, seeded(2))
    xi = noisy.x - noisy.z @ M.T
    assert abs(float(xi.square().sum(1).mean()) - 0.36) < 5 * 0.36 * math.sqrt(2 / (30 * 4000))
    spiky = replace(plain, spike=Spike(0.3, 0.2)).sample(4000, seeded(2))
    spikes = (spiky.x - spiky.z @ M.T) @ M
    assert bool(((spikes.abs() < 1e-9) | ((spikes.abs() - 0.3).abs() < 1e-9)).all())
    assert abs(float((spikes.abs() > 0.1).double().mean()) - 0.2) < 5 * 0.4 / math.sqrt(80_000)
    assert abs(float(spikes.mean())) < 5 * 0.3 * math.sqrt(0.2 / 80_000)


@given(st.floats(0.0, 1.2), st.integers(0, 20))
def test_the_margin_is_met_and_the_rest_of_the_law_kept(margin: float, seed: int) -> None:
    model = sparse_coding(
        torch.eye(40, dtype=torch.float64), two_level_law(40, 4), 4, margin=margin
    )
    s = model.sample(64, seeded(seed))
    assert s.x.shape == (64, 40)
    assert float((s.z @ model.w_star).abs().min()) >= margin
    assert bool((s.y * (s.z @ model.w_star) >= 0).all())


def test_the_margin_draws_from_the_conditional_law() -> None:
    """Against brute force: draw without it and throw away."""
    eye = torch.eye(40, dtype=torch.float64)
    free = sparse_coding(eye, two_level_law(40, 4), 4)
    z = free.sample(60_000, seeded(1)).z
    z = z[(z @ free.w_star).abs() >= 1]
    kept = replace(free, margin=1.0).sample(20_000, seeded(2)).z
    for measure in (lambda t: (t != 0).double().sum(1), lambda t: (t.sum(1)).abs()):
        a, b = measure(z), measure(kept)
        error = math.sqrt(float(a.var()) / len(a) + float(b.var()) / len(b))
        assert abs(float(a.mean() - b.mean())) < 5 * error


def test_a_stream_is_fresh_and_repeats_with_its_seed() -> None:
    model = sparse_coding(torch.eye(40, dtype=torch.float64), two_level_law(40, 4), 4, margin=0.5)
    one = list(model.stream(300, seeded(3), steps=20))
    two = list(model.stream(300, seeded(3), steps=20))
    assert len(one) == 20
    assert all(x.shape == (300, 40) and y.shape == (300,) for x, y in one)
    assert all(torch.equal(a[0], b[0]) for a, b in zip(one, two, strict=True))
    assert not torch.equal(one[0][0], one[1][0])
    x, _ = next(model.stream(7, seeded(0), dtype=torch.float32))
    assert x.dtype == torch.float32


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (two_level_law(D, K, largest=0.01), r"condition \(b\): d Pr\[\|z\| = 1\] = 0.01 is below 0.1 by 0.09"),
        (two_level_law(D, K, small=0.02), r"condition \(c\).*= 0.02 is below 0.1 by 0.08"),
        (two_level_law(D, K, largest=20.0), r"condition \(a\): d E\[z\^2\] = 20.63 is outside \[0.1, 10\]"),
        (HiddenLaw((*LAW.pieces, Piece(0.1, 0.2, 0.01))), r"support: \|z\| reaches 0.1 to 0.2, outside"),
        (HiddenLaw((*LAW.pieces, Piece(1.0, 1.5, 0.01))), "support: .z. reaches 1 to 1.5"),
    ],
)  # fmt: skip
def test_a_law_that_breaks_the_assumption_is_named(law: HiddenLaw, words: str) -> None:
    with pytest.raises(CallError, match=words):
        sparse_coding(torch.eye(D, dtype=torch.float64), law, K)


def test_other_constants_allow_other_laws() -> None:
    law = two_level_law(D, K, largest=0.01)
    eye = torch.eye(D, dtype=torch.float64)
    sparse_coding(eye, law, K, constants=Assumption21(largest=0.01))
    with pytest.raises(CallError, match="condition"):
        sparse_coding(eye, LAW, K, constants=Assumption21(spread=1.1, small=0.3))


def test_spikes_are_held_to_the_noise_model() -> None:
    eye = torch.eye(D, dtype=torch.float64)
    sparse_coding(eye, LAW, K, sigma_x=1.0, spike=Spike(0.4, 0.05))
    with pytest.raises(CallError, match=r"spikes of size 0.5 exceed k\^-0.501 = 0.446"):
        sparse_coding(eye, LAW, K, sigma_x=2.0, spike=Spike(0.5, 0.01))
    with pytest.raises(CallError, match=r"d E\[xi''\^2\] = 0.8 exceed 1 sigma_x\^2 = 0.25"):
        sparse_coding(eye, LAW, K, sigma_x=0.5, spike=Spike(0.4, 0.05))


def test_a_dense_code_is_warned_of() -> None:
    eye = torch.eye(D, dtype=torch.float64)
    with pytest.warns(
        SparseCodingWarning, match=r"k=12 > d\^0.499 = 9.95.*above 1/k on clean points"
    ):
        sparse_coding(eye, two_level_law(D, 12), 12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sparse_coding(eye, two_level_law(D, 9), 9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": 0.5}, "k=0.5 with d=100"),
        ({"sigma_x": -1.0}, "sigma_x=-1"),
        ({"margin": math.inf}, "margin=inf"),
        ({"w_star": torch.zeros(100)}, "w_star: 100 numbers"),
        ({"M": torch.zeros(100, 100)}, "column of zeros"),
        ({"M": torch.full((100, 100), torch.nan)}, "M holds NaN"),
    ],
)
def test_other_bad_calls(change: dict, words: str) -> None:
    call = {"M": torch.eye(D, dtype=torch.float64), "law": LAW, "k": K} | change
    with pytest.raises(CallError, match=words):
        sparse_coding(**call)


def test_a_margin_that_is_never_met_is_said() -> None:
    model = sparse_coding(torch.eye(D, dtype=torch.float64), LAW, K, margin=60.0)
    with pytest.raises(CallError, match=r"margin=60: 0 of .* lower the margin"):
        model.sample(10, seeded())


def test_dictionaries() -> None:
    M = unitary_dictionary(12, 12, seeded(0))
    torch.testing.assert_close(M.T @ M, torch.eye(12, dtype=torch.float64))
    assert coherence(M) < 1e-12
    part = unitary_dictionary(12, 5, seeded(0))
    torch.testing.assert_close(part.T @ part, torch.eye(5, dtype=torch.float64))
    assert torch.equal(identity_dictionary(4, 4), torch.eye(4, dtype=torch.float64))
    blocks = block_dictionary(12, 3, seeded(1))
    torch.testing.assert_close(blocks.T @ blocks, torch.eye(12, dtype=torch.float64))
    assert max(matrix_norms(blocks)) <= math.sqrt(3) + 1e-12
    assert matrix_norms(torch.tensor([[1.0, -2.0], [0.0, 3.0]])) == (3.0, 5.0)
    wide = incoherent_dictionary(50, 80, seeded(2))
    assert wide.shape == (50, 80)
    torch.testing.assert_close(wide.norm(dim=0), torch.ones(80, dtype=torch.float64))
    pairs = [abs(float(wide[:, i] @ wide[:, j])) for i in range(80) for j in range(i)]
    assert coherence(wide) == pytest.approx(max(pairs))
    for call in (
        lambda: unitary_dictionary(4, 5, seeded()),
        lambda: identity_dictionary(4, 0),
        lambda: block_dictionary(10, 3, seeded()),
    ):
        with pytest.raises(CallError):
            call()
    model = sparse_coding(wide, two_level_law(50, 4), 4)
    assert model.sample(3, seeded()).x.shape == (3, 50)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Piece(0.0, 1.0, 0.1),
        lambda: Piece(0.5, 0.4, 0.1),
        lambda: Piece(0.5, 0.6, 0.0),
        lambda: HiddenLaw(()),
        lambda: HiddenLaw((Piece(1, 1, 0.7), Piece(0.5, 0.5, 0.7))),
        lambda: Spike(0.0, 0.1),
    ],
)
def test_laws_that_are_none(make) -> None:
    with pytest.raises(CallError):
        make()
