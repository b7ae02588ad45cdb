"""min2025.persists against closed forms: what a linear rule can reach, and what its claims can say."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.optimize import minimize

from benches import verdicts
from tacit.data import min2024_mixture
from tacit.errors import CallError
from tacit.papers.min2025.persists import exhibit as persists
from tacit.papers.min2025.persists.settings import EXHIBITS, MODELS, Persists

TINY = Persists(
    K=4, K1=2, D=12, h=12, n=120, steps=40, points=6, certified=4, repeats=1,
    models=("logistic", "tanh", "relu2.small", "poly", "poly.small"),
)  # fmt: skip


def test_the_largest_linear_margin_is_the_stated_one():
    """1/sqrt(K - (K1-K2)^2/K), by minimising ||u||^2 under margins of 1 on the centres."""
    K, K1 = 10, 6
    mixture = min2024_mixture(K, K, K1, 0.0)
    x, y = mixture.centres.numpy(), mixture.labels.numpy()
    found = minimize(
        lambda u: u[:-1] @ u[:-1],
        np.append(y @ x, 0.0),
        constraints={"type": "ineq", "fun": lambda u: y * (x @ u[:-1] + u[-1]) - 1},
        method="SLSQP",
        options={"ftol": 1e-12},
    )
    expected = 1 / math.sqrt(K - (K1 - (K - K1)) ** 2 / K)
    assert 1 / math.sqrt(found.fun) == pytest.approx(expected, rel=1e-6)


def test_the_closed_form_certificate_holds_for_a_trained_PolyReLU_net(bench):
    """Random and worst directions shorter than the certificate never break."""
    config = replace(TINY, steps=400)
    stream = bench.generator("data", seed=5)
    mixture = min2024_mixture(config.D, config.K, config.K1, config.alpha, stream)
    data, test = mixture.sample(200, stream), mixture.sample(6, stream)
    recipe = persists.recipes()["poly.small"]
    start = persists.poly_start(config, recipe, stream, "cpu")
    net = persists.descend(
        start, data.x, data.y, step=1.0, steps=400, batch=100, loss="logistic", generator=stream
    ).net
    upper = persists.minimal(net, test.x, test.y).radius
    lower = persists.certified(net, test.x, test.y, upper)
    assert (lower > 0.8 * upper).all()
    ways = torch.randn(500, config.D, generator=stream, dtype=torch.float64)
    ways = torch.cat(
        [
            ways,
            mixture.centres,
            -mixture.centres,
            (mixture.centres[:, None] - mixture.centres).flatten(0, 1),
        ]
    )
    ways = ways[ways.norm(dim=1) > 0]
    ways = ways / ways.norm(dim=1, keepdim=True)
    for x, y, r in zip(test.x, test.y, lower, strict=True):
        assert (y * net(x + r * ways) > 0).all()


def test_starts_are_torchs_default_times_a_factor(bench):
    config = replace(TINY, D=400, h=300)
    for model, factor in (("relu", 1.0), ("relu.small", persists.SMALL)):
        recipe = persists.recipes()[model]
        module = persists.module_start(config, recipe, bench.generator("s"), "cpu")
        first, _, second = module.requires_grad_(False)
        for layer, inputs in ((first, 400), (second, 300)):
            bound = factor / math.sqrt(inputs)
            torch.manual_seed(0)
            theirs = torch.nn.Linear(layer.in_features, layer.out_features).weight.detach()
            assert float(layer.weight.abs().max()) <= bound
            assert float(layer.weight.abs().max()) == pytest.approx(
                factor * float(theirs.abs().max()), rel=0.02
            )
            assert float(layer.weight.std()) == pytest.approx(factor * float(theirs.std()), rel=0.1)


def test_every_model_has_a_recipe_and_a_name_of_its_own():
    recipes = persists.recipes()
    assert tuple(recipes) == MODELS
    assert len({recipe.name for recipe in recipes.values()}) == len(recipes)


def test_the_run_has_every_model_in_a_claim_sound_certificates_and_a_figure(bench):
    outcome = persists.run(TINY, bench)
    found = {claim.id: claim for claim in outcome.claims}
    assert set(found) == {"clean", "named", "poly", "poly.small", "certified"}
    assert [member.id for member in found["named"].members] == ["logistic", "tanh", "relu2.small"]
    # one training says nothing of other trainings
    assert [claim.verdict for claim in outcome.claims if claim.id != "clean"] == ["undecided"] * 4
    data = outcome.data
    assert data.radius.dims == ("seed", "model", "point")
    assert np.isfinite(data.loss).all()
    lower, upper = data.lower.values[0], data.radius.values[0, :, : TINY.certified]
    tanh = TINY.models.index("tanh")
    assert np.isnan(lower[tanh]).all()
    assert (np.delete(lower, tanh, 0) <= np.delete(upper, tanh, 0) * (1 + 1e-9)).all()
    np.testing.assert_allclose(lower[0], upper[0], rtol=1e-6)  # a linear rule: both exact
    (axes,) = persists.draw(data, TINY).axes
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert rows == ["logistic regression", "tanh", "ReLU, 2 hidden", "PolyReLU p = 3"]


@pytest.mark.slow
def test_at_a_middle_size_relu_stays_and_polyrelu_leaves(bench):
    config = Persists(repeats=3, models=("logistic", "relu", "tanh", "poly.small"))
    found = verdicts(persists.run(config, bench))
    assert (found["named"], found["poly.small"], found["certified"]) == (
        "holds",
        "holds",
        "as predicted",
    )


def told(critical, bench):
    """The claims of five trainings of each model with these radii."""
    models, config = tuple(critical), Persists(models=tuple(critical))
    radii = np.array([values + 1e-4 * np.arange(5) for values in critical.values()])
    right = np.full(radii.shape, 1000)
    right[0, 0] = 989
    data = xr.Dataset(
        {"critical": (("model", "seed"), radii), "right": (("model", "seed"), right)},
        coords={"model": list(models)},
    )  # fmt: skip
    return {claim.id: claim for claim in persists.claims(data, config, bench)}


def test_what_the_poster_does_not_name_is_a_prediction_of_ours(bench):
    found = told({"logistic": 0.32, "tanh.small": 0.33, "leaky": 0.32, "adam": 0.7}, bench)
    assert (found["named"].source, found["named"].verdict) == ("words", "holds")
    assert (found["others"].source, found["others"].verdict) == ("ours", "not as predicted")
    assert found["others"].reason.endswith("adam")
    # trainings are counted, not their points: one of 20 misses more than one point in 100
    clean = found["clean"]
    assert (clean.measured, clean.n, clean.over, clean.verdict) == (
        0.95,
        20,
        "trainings",
        "undecided",
    )


def test_trainings_that_disagree_leave_a_model_undecided(bench):
    found = told({"logistic": 0.32, "relu3": [0.32, 0.33, 0.32, 0.33, math.inf]}, bench)
    assert found["named"].verdict == "undecided"
    assert found["named"].reason == "not decided: relu3"


def test_the_radius_of_a_trained_net_is_the_papers_conjecture(bench):
    found = {claim.id: claim for claim in persists.run(TINY, bench).claims}
    assert "Remark 2" in found["poly.small"].where
    assert (found["poly.small"].source, found["certified"].source) == ("words", "ours")
    assert found["poly.small"].regime.startswith("outside")


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"K": 2, "K1": 1}, "K=2"), ({"n": 50}, "n=50"), ({"K": 200}, "K=200"), ({"alpha": 0.0}, "alpha"),
     ({"repeats": 0}, "repeats=0"), ({"models": ("relu", "elu")}, "models=elu"), ({"models": ()}, "choose from")],
)  # fmt: skip
def test_impossible_settings_are_refused(settings, words):
    with pytest.raises(CallError, match=words):
        Persists(**settings)


def test_the_entry_has_three_scales():
    (exhibit,) = EXHIBITS
    assert exhibit.id == "min2025.persists"
    assert callable(exhibit.load().run)
