from dataclasses import replace

import pytest
import xarray as xr

from benches import new_bench, verdicts
from tacit.errors import CallError
from tacit.measure import Tail
from tacit.papers.min2025.robust import exhibit as robust
from tacit.papers.min2025.robust.settings import Robust

CONFIG = Robust(K=6, K1=4, p=(3.0, 12.0), ratio=(1.0, 60.0), n=6000, points=1000)


@pytest.fixture(scope="module")
def outcome():
    return robust.run(CONFIG, new_bench())


def test_bound_and_bayes(outcome):
    made = {claim.id: claim for claim in outcome.claims}
    assert {made[id].verdict for id in ("bound", "reached", "lost", "bayes.radius")} == {"holds"}
    assert "Theorem 3" in made["lost"].where
    assert made["bayes.radius"].statement.startswith(
        "F^(12) "
    )  # p large, and nothing of smaller ones
    curve = outcome.data.robust
    # no classifier keeps more at sqrt(2)/2, where the balls of two classes share a midpoint
    assert float(curve.sel(radius=slice(robust.BEST, None)).max()) <= CONFIG.K1 / CONFIG.K
    # certified below attacked, and no curve rises with the radius
    assert (
        curve.sel(classifier="Bayes (certified)") <= curve.sel(classifier="Bayes (attacked)")
    ).all()
    assert (curve.diff("radius") <= 0).all()


def test_a_bound_above_one_is_vacuous_and_a_share_at_its_bar_undecided(outcome):
    loud = replace(CONFIG, ratio=(1.0,))
    data = outcome.data.sel(ratio=[1.0])
    data["disagree"] = xr.full_like(data.disagree, CONFIG.n // 100)
    found = verdicts(tuple(robust.claims(data, loud, new_bench())))
    assert (found["bound"], found["bayes.sign"]) == ("vacuous", "undecided")


def test_at_laptop_scale_the_bound_can_fail_in_several_settings():
    config = Robust()
    bounds = [Tail(0, config.n, 2.0 * (config.K + 1), r * d**2 / (2 * config.K)).bound()
              for r in config.ratio for d in config.delta]  # fmt: skip
    assert sum(bound < 1 for bound in bounds) >= 3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"K1": 10}, "K1=10"),
        ({"p": (1.5,)}, r"p=1\.5"),
        ({"alpha": 0.0}, "alpha"),
        ({"K": 2000}, "K=2000"),
    ],
)
def test_impossible_settings_are_refused(settings, words):
    with pytest.raises(CallError, match=words):
        Robust(**settings)
