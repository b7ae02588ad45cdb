"""Problems in the coordinates of their span have the law of those in R^d: their Gram matrices, entry by entry."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import digamma

from tacit.errors import CallError
from tacit.papers.li2025._shared.compact import compact_problem

D, K, N, H, DRAWS = 9, 2, 4, 2, 1500


@pytest.fixture(scope="module")
def grams():
    """Products of all noises and first weights, of DRAWS problems: (draws, n + h, n + h)."""
    stream, found = torch.Generator().manual_seed(0), []
    for _ in range(DRAWS):
        problem = compact_problem(D, K, 1, N, H, stream)
        noise = problem.train.x - problem.mixture.centres[problem.train.z]
        rows = torch.cat([noise, problem.rows])
        found.append((rows @ rows.T).numpy())
    return np.stack(found)


def test_squared_lengths_are_chi_squared_with_d_degrees_of_freedom(grams):
    for i in range(N + H):
        assert stats.kstest(grams[:, i, i], stats.chi2(D).cdf).pvalue > 1e-3


def test_cosines_have_the_law_of_random_directions(grams):
    """(1 + cosine)/2 is Beta((d-1)/2, (d-1)/2), and log det of the Gram matrix has a Wishart matrix's mean."""
    size = np.sqrt(np.einsum("nii->ni", grams))
    law = stats.beta((D - 1) / 2, (D - 1) / 2)
    for i, j in ((0, 1), (2, 5), (4, 5)):
        cosine = grams[:, i, j] / (size[:, i] * size[:, j])
        assert stats.kstest((1 + cosine) / 2, law.cdf).pvalue > 1e-3
    log_volume = np.linalg.slogdet(grams)[1]
    expected = sum(math.log(2) + float(digamma((D - i) / 2)) for i in range(N + H))
    assert log_volume.mean() == pytest.approx(expected, abs=4 * log_volume.std() / math.sqrt(DRAWS))


def test_too_few_dimensions_are_refused():
    with pytest.raises(CallError, match="d=7"):
        compact_problem(7, K, 1, N, H, torch.Generator().manual_seed(0))
