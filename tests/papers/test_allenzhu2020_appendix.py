"""Lemmas of allenzhu2020's appendix: Claims G.6 and G.7, Lemmas G.4, H.1 and A.2, each by a computation."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import linprog
from scipy.stats import norm
from torch.nn.functional import softplus

from tacit.nets import SymmetricNet


def seeded(seed):
    return torch.Generator().manual_seed(seed)


# --- Claim G.6: the series of E[rho 1[rho + x >= 0]] and of E[1[rho + x >= 0]]


def even_coefficient(i):
    """c_2i = (-1/2)^i / (sqrt(2 pi) i!)."""
    return (-0.5) ** i / (math.sqrt(2 * math.pi) * math.factorial(i))


def odd_coefficient(i):
    """c'_(2i+1) = (-1/2)^i / (sqrt(2 pi) i! (2i + 1))."""
    return even_coefficient(i) / (2 * i + 1)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("share", [-1.0, -0.4, 0.0, 0.7, 1.0])
def test_g6_series(sigma, share):
    x = share * sigma
    first = quad(lambda r: r * norm.pdf(r, scale=sigma), -x, 12 * sigma, epsabs=1e-13)[0]
    series = sigma * sum(even_coefficient(i) * share ** (2 * i) for i in range(25))
    assert series == pytest.approx(first, abs=1e-10)
    chance = 0.5 + sum(odd_coefficient(i) * share ** (2 * i + 1) for i in range(25))
    assert chance == pytest.approx(norm.cdf(x, scale=sigma), abs=1e-12)


def test_g6_coefficients_are_smaller_than_printed():
    """Theta(1/i!) and Theta(1/(i+1)!) leave out the factor 2^-i: true for constant i, and as upper bounds."""
    for i in range(20):
        assert abs(even_coefficient(i)) * math.factorial(i) * 2**i == pytest.approx(
            1 / math.sqrt(2 * math.pi)
        )
        assert abs(odd_coefficient(i)) * math.factorial(i + 1) <= 1


def test_g6_derivative_is_positive():
    """Its proof prints d/dx E[1[rho + x >= 0]] with a minus."""
    h = 1e-5
    slope = (norm.cdf(0.3 + h) - norm.cdf(0.3 - h)) / (2 * h)
    assert slope == pytest.approx(norm.pdf(0.3), rel=1e-6)
    assert slope > 0


# --- Claim G.7: a polynomial of constant degree is somewhere on [1/2, 1] as large as its coefficients


def least_height(R, grid=400):
    """min over polynomials with max |c_r| = 1 of max |p| on [1/2, 1], by linear programs on a grid."""
    x = np.linspace(0.5, 1, grid)
    powers = x[:, None] ** np.arange(R + 1)
    best = math.inf
    for r in range(R + 1):
        # variables c and the height; |p| <= height on the grid, c_r = 1, the others in [-1, 1]
        rows = np.block([[powers, -np.ones((grid, 1))], [-powers, -np.ones((grid, 1))]])
        bounds = [(1.0, 1.0) if i == r else (-1.0, 1.0) for i in range(R + 1)] + [(0.0, None)]
        found = linprog([*[0.0] * (R + 1), 1.0], A_ub=rows, b_ub=np.zeros(2 * grid), bounds=bounds)
        best = min(best, found.fun)
    return best


def test_g7_has_a_constant_for_each_degree():
    heights = [least_height(R) for R in range(4)]
    assert heights[0] == pytest.approx(1)
    assert all(0 < b < a for a, b in itertools.pairwise(heights))
    rng = np.random.default_rng(0)
    x = np.linspace(0.5, 1, 1000)
    for R, height in enumerate(heights):
        c = rng.uniform(-1, 1, (500, R + 1))
        most = np.abs(c @ x[None, :] ** np.arange(R + 1)[:, None]).max(1)
        assert (most >= 0.99 * height * np.abs(c).max(1)).all()


# --- Lemma G.4: the tensor of tangent features is not small, whatever v is


def tensor_gram(u, r):
    """K with v'Kv = ||T_(r+1)||_F^2 for T = Sym(sum_i v_i (x) u_i^(x r)), unit rows u (m, d)."""
    m, d = u.shape
    cos = u @ u.T
    K = np.einsum("ij,ab->iajb", cos**r, np.eye(d))
    # <v_i, u_j> <v_j, u_i> <u_i, u_j>^(r-1)
    K = K + r * np.einsum("ij,ja,ib->iajb", cos ** (r - 1), u, u)
    return K.reshape(m * d, m * d) / (r + 1)


def test_g4_gram_is_that_of_the_symmetric_tensor():
    rng = np.random.default_rng(1)
    u = rng.normal(size=(2, 3))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    v, r = rng.normal(size=(2, 3)), 2
    T = sum(np.einsum("a,b,c->abc", v[i], u[i], u[i]) for i in range(2))
    whole = sum(np.transpose(T, p) for p in itertools.permutations(range(3))) / 6
    flat = v.reshape(-1)
    assert flat @ tensor_gram(u, r) @ flat == pytest.approx((whole**2).sum())


@pytest.mark.parametrize("d", [8, 12, 16])
def test_g4_lower_bound(d):
    """m = d (C = 1), r = 3: for the worst v with max ||v_i|| = 1, ||T||_F sqrt(d) is bounded from below."""
    u = np.random.default_rng(d).normal(size=(d, d))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    K = tensor_gram(u, 3)
    worst = math.inf
    for j in range(d):
        mine = np.arange(j * d, (j + 1) * d)
        rest = np.setdiff1d(np.arange(d * d), mine)
        # the others of v at their best for the adversary: a Schur complement
        schur = (
            K[np.ix_(mine, mine)]
            - K[np.ix_(mine, rest)] @ np.linalg.pinv(K[np.ix_(rest, rest)]) @ K[np.ix_(rest, mine)]
        )
        worst = min(worst, float(np.linalg.eigvalsh(schur)[0]))
    assert math.sqrt(max(worst, 0)) * math.sqrt(d) >= 0.5


@pytest.mark.parametrize("r", [1, 2, 3])
def test_g5_first_item_has_tau_to_the_power_r(r):
    """Printed: max over ||delta||_inf <= tau of |T(delta^r)| >= Omega(||T||_F/tau^r). It is of order tau^r."""
    rng = np.random.default_rng(r)
    T = rng.normal(size=(3,) * r)
    letters = "abc"[:r]
    corners = np.array(list(itertools.product((-1, 1), repeat=3)))

    def largest(tau):
        return max(
            abs(np.einsum(f"{letters},{','.join(letters)}->", T, *[tau * c] * r)) for c in corners
        )

    assert largest(0.01) == pytest.approx(0.01**r * largest(1.0))
    assert largest(0.01) < 1e-3 * np.linalg.norm(T) / 0.01**r


# --- Lemma H.1: small balls, by the exact law on a lattice


def exact_law(d, k, ones=2.0, few=0.4, features=None):
    """The law of sum_j z_j for |z| in {1/sqrt(k), 1}, by powers of a Fourier transform."""
    root = round(math.sqrt(k))
    count = d if features is None else features
    size = 1 << 13
    p = np.zeros(size)
    p[0] = 1 - ones / d - few * k / d
    for step, chance in ((1, few * k / d), (root, ones / d)):
        p[step] += chance / 2
        p[-step] += chance / 2
    law = np.fft.ifft(np.fft.fft(p) ** count).real
    assert abs(law.sum() - 1) < 1e-9
    return np.fft.fftshift(law), np.arange(-size // 2, size // 2) / root


@pytest.mark.parametrize(("d", "k"), [(400, 9), (2500, 36), (40_000, 144)])
def test_h1_upper_and_lower(d, k):
    for part in (1.0, 0.5, 0.1):
        law, value = exact_law(d, k, features=round(part * d))
        for t in (0.02, 0.1, 0.3, 1.0):
            bound = t / math.sqrt(part) + 1 / math.sqrt(part * k)
            for r in (0.0, 0.5, 1.0, 2.0):
                inside = law[np.abs(value - r) <= t + 1e-12].sum()
                # (a) with the constant 2, where the few features make it say something
                assert inside <= 2 * bound
    law, value = exact_law(d, k)
    for t in (0.1, 0.3, 1.0):
        inside = law[np.abs(value) <= t + 1e-12].sum()
        assert inside >= 0.2 * t - 0.5 * math.log(k) / math.sqrt(k)


# --- Lemma A.2: losses with the noise drawn approach their expectation as N^-1/2


def test_a2_sampled_noise():
    g = seeded(0)
    net = SymmetricNet(
        torch.randn(5, 6, generator=g, dtype=torch.float64), torch.full((5,), 0.4).double(), 0.3
    )
    x = torch.randn(1600, 6, generator=g, dtype=torch.float64)
    y = torch.where(torch.rand(1600, generator=g) < 0.5, -1.0, 1.0).double()

    def gradient(rows, reps):
        """Losses and gradients with fresh noise for each point, `reps` times: (reps,), (reps, 5, 6)."""
        z = x[:rows] @ net.w.T
        rho = net.sigma * torch.randn(reps, rows, 5, generator=g, dtype=torch.float64)
        up, down = z + rho - net.b, rho - z - net.b
        f = (up.clamp_min(0) - down.clamp_min(0)).sum(-1)
        pull = -y[:rows] * torch.sigmoid(-y[:rows] * f) / rows
        slope = (up >= 0).double() + (down >= 0).double()
        loss = softplus(-y[:rows] * f).mean(1)
        return loss, torch.einsum("rn,rnh,nd->rhd", pull, slope, x[:rows])

    spread = []
    for rows in (100, 1600):
        loss, grad = gradient(rows, 200)
        spread.append(
            (float(loss.std()), float((grad - grad.mean(0)).flatten(1).norm(dim=1).mean()))
        )
    for few, many in zip(*spread, strict=True):
        assert few / many == pytest.approx(4, rel=0.35)
    # and what they approach is the expectation: of f in closed form, of the loss by ten times the draws
    drawn = torch.stack([net.sampled(x[:50], g) for _ in range(4000)]).mean(0)
    assert float((drawn - net(x[:50])).abs().max()) < 0.06
    loss, _ = gradient(100, 200)
    many, _ = gradient(100, 2000)
    assert float(loss.mean()) == pytest.approx(
        float(many.mean()), abs=4 * float(loss.std()) / math.sqrt(200)
    )
