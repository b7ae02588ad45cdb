import math

import pytest
import torch
from scipy.stats import multivariate_normal

from tacit.data import cluster_mixture, min2024_mixture, orthogonal_centres, sqrt_d_mixture
from tacit.errors import CallError
from tacit.nets import (
    BayesRule,
    NearestNeighbour,
    average_net,
    centre_net,
    decoupled_net,
    frei_net,
    linear_rule,
    prop48_net,
)

relu = torch.relu


@pytest.fixture(scope="module")
def mixture():
    return min2024_mixture(12, 5, 3, 0.4, torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def x():
    return torch.randn(40, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_F_as_printed_in_equation_3(mixture, x):
    plus = mixture.centres[:3].sum(0) / math.sqrt(3)
    minus = mixture.centres[3:].sum(0) / math.sqrt(2)
    printed = math.sqrt(3) * relu(x @ plus) - math.sqrt(2) * relu(x @ minus)
    assert torch.allclose(average_net(mixture)(x), printed)


def test_f_FA_as_printed_in_definition_4_1(x):
    mixture = sqrt_d_mixture(12, 5, 3)
    plus, minus = mixture.centres[:3].mean(0), mixture.centres[3:].mean(0)
    printed = 3 * relu(x @ plus) - 2 * relu(x @ minus)
    assert torch.allclose(average_net(mixture)(x), printed)


def test_f_avg_has_its_biases(mixture, x):
    z = x @ mixture.centres.T
    printed = relu(z[:, :3].sum(1) + 0.3) - relu(z[:, 3:].sum(1) - 0.2)
    assert torch.allclose(average_net(mixture, 0.3, -0.2)(x), printed)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("norm", [1.0, 3.0])
def test_Fp_as_printed_in_equation_2(x, p, norm):
    mixture = cluster_mixture(orthogonal_centres(5, 12, norm), 3, 0.1)
    A = torch.tensor([1.0, 2.0, 0.5, 1.5, 1.0]).double()
    z = relu(x @ mixture.centres.T) ** p
    assert torch.allclose(centre_net(mixture, p)(x), z @ mixture.labels)
    assert torch.allclose(centre_net(mixture, p, A)(x), z @ (A * mixture.labels))


def test_f_dec_and_freis_net_as_printed(x):
    mixture = sqrt_d_mixture(12, 5, 3)
    z = x @ mixture.centres.T
    assert torch.allclose(decoupled_net(mixture)(x), relu(z - 6) @ mixture.labels)
    assert torch.allclose(frei_net(mixture)(x), relu(4 * z / 12 - 2) @ mixture.labels)


def test_prop_4_8_as_printed(x):
    mixture = sqrt_d_mixture(12, 5, 3)
    z = x @ mixture.centres.T
    sums = [z[:, :3].sum(1)] * 3 + [z[:, 3:].sum(1)] * 2
    printed = torch.stack([relu(z[:, j] + sums[j]) for j in range(5)], 1)
    assert torch.allclose(prop48_net(mixture).logits(x), printed)


def test_u_is_the_signed_sum(mixture, x):
    assert torch.allclose(linear_rule(mixture)(x), x @ mixture.centres.T @ mixture.labels)


def test_the_bayes_rule_is_the_log_ratio_of_densities(x):
    weights = torch.tensor([1.0, 2.0, 3.0, 1.0, 1.0])
    mixture = cluster_mixture(orthogonal_centres(5, 12), 3, 0.8, weights)
    density = [
        w * multivariate_normal(mu.numpy(), 0.64).pdf(x.numpy())
        for w, mu in zip(mixture.weights.tolist(), mixture.centres, strict=True)
    ]
    expected = torch.tensor(sum(density[:3]) / sum(density[3:])).log()
    assert torch.allclose(BayesRule(mixture)(x), expected)


def test_the_nearest_neighbour_agrees_with_scikit_learn(x):
    from sklearn.neighbors import KNeighborsClassifier

    g = torch.Generator().manual_seed(2)
    train = torch.randn(30, 12, generator=g, dtype=torch.float64)
    y = torch.where(torch.rand(30, generator=g) < 0.5, 1.0, -1.0).double()
    theirs = KNeighborsClassifier(1).fit(train.numpy(), y.numpy()).predict(x.numpy())
    assert NearestNeighbour(train, y)(x).sign().tolist() == theirs.tolist()


def test_bad_input(mixture):
    with pytest.raises(CallError, match="5 positive weights"):
        centre_net(mixture, 3, -torch.ones(5).double())
    with pytest.raises(CallError, match="both classes"):
        NearestNeighbour(torch.ones(3, 2).double(), torch.ones(3).double())
    with pytest.raises(CallError, match="NaN"):
        NearestNeighbour(torch.full((2, 2), math.nan).double(), torch.tensor([1.0, -1.0]).double())
    with pytest.raises(CallError, match="needs noise"):
        BayesRule(min2024_mixture(5, 3, 1, 0.0))
    with pytest.raises(CallError, match=r"p=0\.9"):
        centre_net(mixture, 0.9)
