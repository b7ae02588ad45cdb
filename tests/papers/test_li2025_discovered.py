"""li2025.discovered: what theory gives merged groups, and that the claims can say no."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from benches import verdicts
from tacit.certify import radius
from tacit.data import Samples
from tacit.errors import CallError
from tacit.measure.subclasses import Subclasses
from tacit.nets import MultiClassNet
from tacit.papers.li2025._shared.synthetic import mixture_of
from tacit.papers.li2025.discovered import exhibit as discovered
from tacit.papers.li2025.discovered.settings import EXHIBITS, Discovered

TINY = Discovered(
    d=80, k=6, k1=3, n=120, points=2, sigma=(0.3, 4.0), at=0.3, count=(1, 4), early=(0, 2), m=3, width=6,
    T=40, eta=0.01, few=2, repeats=2,
)  # fmt: skip


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 1), (3,)])
def test_the_radius_of_merged_groups_is_that_of_a_net_of_group_sums(sizes):
    """sqrt(d/(g + g')) at the centres, large logits, by the certified interval."""
    d, k1 = 40, 3
    mixture = mixture_of(d, 6, k1, sigma=0.1)
    ends = np.cumsum([0, *sizes])
    groups = [range(a + side, b + side) for side in (0, 3) for a, b in itertools.pairwise(ends)]
    z = torch.tensor([next(g for g, group in enumerate(groups) if j in group) for j in range(6)])
    labels = torch.tensor([1.0] * len(sizes) + [-1.0] * len(sizes), dtype=torch.float64)
    sums = torch.stack([mixture.centres[list(group)].sum(0) for group in groups])
    net = MultiClassNet(100 * sums.unsqueeze(1), labels)
    found = radius(net, mixture.centres, mixture.labels)
    config = replace(TINY, d=d, at=1e-6, n=60)
    truth = torch.arange(6)
    points = Samples(mixture.centres, mixture.labels, truth)
    theory = discovered.group_radius(config, Subclasses(z, labels), truth, points)
    own = torch.tensor([len(groups[int(g)]) for g in z], dtype=torch.float64)
    torch.testing.assert_close(theory, (d / (own + max(sizes))).sqrt(), rtol=1e-4, atol=0)
    assert (found.lower <= theory * 1.01).all()
    torch.testing.assert_close(found.upper, theory, rtol=0.01, atol=0)


def test_parts_of_a_split_cluster_count_once():
    config = replace(TINY, at=1e-6)
    mixture = mixture_of(config.d, 6, 3, sigma=0.1)
    truth = torch.arange(6).repeat_interleave(4)
    halves = torch.arange(12).repeat_interleave(2)  # every cluster in two parts
    labels = torch.tensor([1.0] * 6 + [-1.0] * 6, dtype=torch.float64)
    points = Samples(mixture.centres, mixture.labels, torch.arange(6))
    theory = discovered.group_radius(config, Subclasses(halves, labels), truth, points)
    assert theory.numpy() == pytest.approx(math.sqrt(config.d / 2), rel=1e-4)


def test_the_rand_index_of_random_subclasses_is_the_stated_one():
    config = replace(TINY, k=10, k1=5)
    generator = torch.Generator().manual_seed(3)
    truth = torch.randint(10, (200_000,), generator=generator)
    guess = torch.randint(5, (200_000,), generator=generator) + 5 * (truth >= 5)
    assert adjusted_rand_score(truth, guess) == pytest.approx(
        discovered.random_rand(config), abs=0.003
    )


@pytest.mark.slow
def test_a_run_finds_subclasses_where_it_can_and_draws(bench):
    outcome = discovered.run(TINY, bench)
    data = outcome.data
    assert set(verdicts(outcome)) == {"found", "until", "beyond", "merged", "split", "features"}
    assert data.rand.sel(sigma=0.3, choice="data").values.tolist() == [1.0, 1.0]
    (until,) = (claim for claim in outcome.claims if claim.id == "until")
    assert (until.measured, until.verdict) == (
        1.0,
        "undecided",
    )  # two of two data sets are not most
    assert data.found.values.tolist() == [[6, 6], [2, 2]]  # at sigma = 4 the classes are left whole
    assert {claim.source for claim in outcome.claims} == {"ours"}
    assert {claim.n for claim in outcome.claims} == {2}  # data sets, not points
    assert (data.lower <= data.upper).all()
    assert data.early_rand.dims == ("seed", "early")
    assert len(discovered.draw(data, TINY).axes) == 4


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"count": (0,)}, "count=0"), ({"count": (50,)}, "count=50"), ({"sigma": (0.0,)}, "sigma=0"),
     ({"k": 100}, "^k=100 > d="), ({"sigma": (1.0, 1.0)}, "each value once"), ({"early": (-1,)}, "early=-1")],
)  # fmt: skip
def test_impossible_settings_are_refused(settings, words):
    with pytest.raises(CallError, match=words):
        replace(TINY, **settings)


def test_the_entry_loads():
    assert EXHIBITS[0].id == "li2025.discovered"
    assert callable(EXHIBITS[0].load().run)
