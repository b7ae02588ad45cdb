import math

import pytest
import torch

from tacit.errors import CallError
from tacit.measure.distance.function import function_distance
from tacit.papers.min2024.alg1 import exhibit as alg1
from tacit.papers.min2024.alg1.settings import EXHIBITS, Estimates


@pytest.mark.parametrize(("K", "K1"), [(3, 2), (3, 1), (4, 2), (7, 5)])
@pytest.mark.parametrize("theta", [0.01, 0.3])
def test_the_closed_form_for_relu_is_the_least_hausdorff_distance(K, K1, theta):
    """Against the 16 activation patterns: on orthogonal planes squares add, c over a fine grid."""
    c = torch.linspace(0.5, 1.5, 200_001, dtype=torch.float64)
    cosine, sine = math.cos(theta), math.sin(theta)

    def beyond(long, short):
        """The distance of the end of a segment from another at angle theta."""
        along = torch.minimum(long * cosine, short)
        return (long * cosine - along) ** 2 + (long * sine) ** 2

    one = torch.ones_like(c)
    ahead, behind = beyond(c, one), beyond(one, c)
    K2 = K - K1
    both = torch.maximum(K1 * ahead + K2 * behind, K1 * behind + K2 * ahead)
    brute = float(both.min().sqrt())
    assert alg1.known_distance(K, K1, 1.0, theta) == pytest.approx(brute, rel=1e-6)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 5.0])
def test_function_distance_finds_the_known_distance(p):
    f, F = alg1.known_net(30, 6, 2, p, 0.05, torch.Generator().manual_seed(4))
    found = function_distance(f, F)
    truth = alg1.known_distance(6, 2, p, 0.05)
    assert found.lower == pytest.approx(truth, rel=1e-6)
    assert truth * (1 - 1e-9) <= found.upper <= truth * (1 + 1e-4)


def test_the_released_offset_stalls_where_the_printed_algorithm_arrives(bench):
    config = Estimates(
        D=(12, 400),
        K=4,
        K1=2,
        p=(1.0, 3.0),
        N1=2000,
        N2=30,
        max_iter=400,
        budgets=(10,),
        plane=2,
        repeats=3,
    )
    outcome = alg1.run(config, bench)
    claims = {claim.id: claim for claim in outcome.claims}
    assert {claims[name].verdict for name in ("printed.p1", "released.p1")} == {"holds"}
    # nets were drawn: two that are exact do not show it of more than half, twelve do
    for name, nets, verdict in (
        ("lower", 12, "holds"),
        ("upper", 12, "holds"),
        ("plane", 2, "undecided"),
    ):
        found = claims[name]
        assert (found.measured, found.n, found.over, found.source) == (1.0, nets, "nets", "check")
        assert found.verdict == verdict
    assert claims["released.p3"].verdict == "differs"
    assert "1e-7" in claims["released.p3"].reason
    assert claims["released.p3"].measured < 0.1
    # 3 runs of 400 steps: its interval has 1 inside
    assert claims["printed.p3"].measured == pytest.approx(1, abs=0.1)
    assert claims["printed.p3"].interval[0] <= 1 <= claims["printed.p3"].interval[1]
    assert (claims["printed.p3"].n, claims["printed.p3"].over) == (3, "runs")
    assert len(alg1.draw(outcome.data, config).axes) == 3


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"D": (15,)}, "D=15"),
        ({"p": (1.5,)}, r"p=1\.5"),
        ({"theta": 2.0}, r"theta=2\.0"),
        ({"N2": 0}, "N2=0"),
        ({"K1": 10}, "K1=10"),
    ],
)
def test_impossible_settings_are_refused(wrong, words):
    with pytest.raises(CallError, match=words):
        Estimates(**wrong)


def test_the_entry_names_the_algorithm():
    (entry,) = EXHIBITS
    assert entry.id == "min2024.alg1"
    assert entry.load() is alg1
