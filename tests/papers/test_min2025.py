import pytest

from benches import verdicts
from tacit.errors import CallError
from tacit.papers.min2025.robust import exhibit as robust
from tacit.papers.min2025.robust.settings import Robust


def test_bound_ceiling_and_bayes(bench):
    config = Robust(K=6, K1=4, p=(3.0, 12.0), ratio=(1.0, 60.0), n=6000, points=500)
    outcome = robust.run(config, bench)
    found = verdicts(outcome)
    assert {found[id] for id in ("bound", "ceiling", "reached", "lost", "bayes.radius")} == {
        "holds"
    }
    # at high noise the nearest-centre rule is not the Bayes rule
    assert "bayes.sign.1" in found
    curve = outcome.data.robust
    # certified below attacked, and no curve rises with the radius
    assert (
        curve.sel(classifier="Bayes (certified)") <= curve.sel(classifier="Bayes (attacked)")
    ).all()
    assert (curve.diff("radius") <= 0).all()


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
