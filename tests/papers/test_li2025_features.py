"""li2025.fig2cd and fig10: nets and cosines on frozen features, against closed forms and plain numpy."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from benches import new_bench, verdicts
from tacit.data.images import Features
from tacit.errors import CallError
from tacit.nets import MultiClassNet
from tacit.papers._shared.crossed import crossed
from tacit.papers._shared.embeddings import Embeddings, embeddings_of
from tacit.papers.li2025 import EXHIBITS
from tacit.papers.li2025.fig2cd import exhibit as fig2cd
from tacit.papers.li2025.fig2cd.claims import claims, more_robust
from tacit.papers.li2025.fig2cd.settings import Embedded
from tacit.papers.li2025.fig10 import exhibit as fig10
from tacit.papers.li2025.fig10.settings import Correlations

PAIRS, MAP = (exhibit.scales["smoke"] for exhibit in EXHIBITS[-2:])


@pytest.fixture(scope="module")
def orthogonal(tmp_path_factory):
    """Embeddings of six orthogonal classes, as a file."""
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(6), 40)
    x = np.sqrt(30) * np.eye(30)[y] + 0.3 * rng.normal(size=(240, 30))
    path = tmp_path_factory.mktemp("features") / "six.npz"
    np.savez(path, x=x, y=y)
    return str(path)


@pytest.fixture(scope="module")
def six(orthogonal):
    """A run on them."""
    config = Embedded(
        orthogonal, train=180, test=60, h=1, eta=0.1, T=(20, 200), points=6, repeats=2
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fig2cd, "READINGS", ("raw",))  # the smoke run has both
        return config, fig2cd.run(config, new_bench())


def test_orthogonal_classes_are_averaged_by_two_labels_and_decoupled_by_six(six):
    """As in Figure 2 (a, b): own cosines 1/sqrt(3), and a diagonal near 1."""
    config, outcome = six
    last = outcome.data.sel(reading="raw").isel(seed=0, T=-1)
    two, many = (last.cosine.sel(net=net).values for net in ("two", "many"))
    own = np.kron(np.eye(2), np.ones((3, 3))) > 0
    assert two[own] == pytest.approx(1 / np.sqrt(3), abs=0.08)
    assert abs(two[~own]).max() < 0.3
    assert many.diagonal().min() > 0.9
    assert verdicts(outcome) == {
        "uniform.raw": "holds", "off.raw": "holds", "compromised.raw": "undecided", "robust.raw": "as predicted",
    }  # fmt: skip
    # all points and starts are alike: six of six show it of more than half, and no more
    assert {c.measured for c in outcome.claims if c.over == "points and seeds"} == {0.0, 1.0}
    assert all(claim.regime.startswith("other data: six.npz") for claim in outcome.claims)
    assert (outcome.data.lower <= outcome.data.upper).all()
    assert set(outcome.nets) == {"two-raw", "many-raw"}
    assert len(fig2cd.draw(outcome.data, config).axes) == 5


def test_a_negative_entry_on_the_diagonal_is_not_nearly_diagonal(six):
    """A quotient with it is negative, and would pass."""
    judge = new_bench().claims("here", source="words", bar="ours: x", regime="inside: x")
    _, outcome = six
    cosine = outcome.data.cosine.copy(deep=True)
    cosine.loc[{"net": "many", "feature": cosine.feature[2], "weight": cosine.weight[2]}] = -0.4
    made = claims(outcome.data.assign(cosine=cosine), judge)
    (off,) = (claim for claim in made if claim.id == "off.raw")
    assert off.verdict == "differs"
    assert off.measured == pytest.approx(
        0.2, abs=0.1
    )  # half of .4, and the largest off the diagonal
    assert off.reason.endswith("on the diagonal the least is -0.40")
    # one start says nothing of others
    made = claims(outcome.data.isel(seed=[0]), judge)
    alone = verdicts([claim for claim in made if claim.over == "starts"])
    assert set(alone.values()) == {"undecided"}


def test_a_wide_certificate_leaves_open_which_net_is_more_robust():
    ends = {"lower": [[0.1] * 40, [0.05] * 40], "upper": [[0.1] * 40, [0.3] * 40]}
    starts = np.array([0.0, 1e-3, 2e-3])[:, None]
    data = xr.Dataset(
        {
            name: (("net", "seed", "point"), np.array(r)[:, None] + starts)
            for name, r in ends.items()
        }
    )
    data = data.assign_coords(net=["two", "many"])
    found = more_robust(data)
    assert (found.value, found.fixed, found.low, found.high) == (0.5, 0.5, 0.0, 1.0)
    # 39, 38 and 37 of 40 points are certified to be
    few = xr.DataArray(np.arange(40) >= np.array([[1], [2], [3]]), dims=("seed", "point"))
    surely = more_robust(data.assign(lower=data.lower + 0.1 * few * (data.net == "many")))
    assert surely.low > 0.8


def test_starts_that_differ_widen_an_interval_over_images():
    """All images of one start are right and none of the other's: their mean over starts, 1/2, is no knowledge."""
    rng = np.random.default_rng(0)
    alike = (rng.random((3, 500)) < 0.5).astype(float)
    wide = (-9.0, 9.0)
    assert crossed(alike).spread < 0.1
    apart = alike + np.array([[0.0], [0.5], [1.0]])
    assert crossed(apart, ends=wide).spread > 1  # t(2) sd/sqrt(3) = 1.24
    assert crossed(apart[:1], ends=wide).spread == 9  # a single one: all between the ends


def test_the_two_label_net_is_the_difference_of_the_two_class_means():
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(5, 2, 7, generator=generator, dtype=torch.float64)
    x = torch.randn(9, 7, generator=generator, dtype=torch.float64)
    net = fig2cd.two_label_net(w, 5)
    active = np.maximum(np.einsum("khd,nd->nkh", w.numpy(), x.numpy()), 0)
    # two classes are positive, three negative
    expected = active[:, :2].mean((1, 2)) - active[:, 2:].mean((1, 2))
    np.testing.assert_allclose(net(x).numpy(), expected, atol=1e-12)
    assert net.fixed_v


def test_points_have_root_mean_square_length_sqrt_d_and_centred_ones_mean_zero(bench):
    found = embeddings_of(MAP, bench)
    for reading in ("raw", "centred"):
        points = fig2cd.points_of(found, reading)
        x, plain = points.train.x.double(), found.train.x.double()
        assert float(x.square().sum(1).mean()) == pytest.approx(x.shape[1], rel=1e-5)
        if reading == "centred":
            assert float(x.mean(0).abs().max()) < 1e-5
            plain = plain - plain.mean(0)
        cosine = torch.nn.functional.cosine_similarity(x, plain)
        assert float(cosine.min()) == pytest.approx(1, abs=1e-5)
        assert points.test.y.tolist() == [1.0 if y < 5 else -1.0 for y in found.test.y.tolist()]


def test_equivalent_weights_are_means_of_h_neurons():
    generator = torch.Generator().manual_seed(2)
    w = torch.randn(4, 3, 6, generator=generator, dtype=torch.float64)
    mu = torch.randn(4, 6, generator=generator, dtype=torch.float64)
    net = MultiClassNet(w, fig2cd.labels_of(4))
    matrix = fig2cd.matrix_of(net, mu, 3)
    assert np.array_equal(matrix, fig2cd.matrix_of(fig2cd.two_label_net(w, 4), mu, 3))
    j = w[2].mean(0)
    assert matrix[1, 2] == pytest.approx(float(mu[1] @ j / mu[1].norm() / j.norm()))


def test_radii_are_in_units_of_the_embeddings_length(bench, six):
    """A move of that length across the boundary exists by construction; Lipschitz bounds it from below."""
    config, outcome = six
    points = fig2cd.points_of(embeddings_of(config, bench), "raw")
    x, y = points.test.x[: config.points].double(), points.test.y[: config.points]
    here = outcome.data.sel(reading="raw", net="two").isel(seed=0)
    net, unit = outcome.nets["two-raw"], np.sqrt(x.shape[1])
    margin = (y * net(x)).numpy()
    assert (margin > 0).all()
    slope = float((net.w.norm(dim=1) * net.v.abs()).sum())
    assert (here.lower.values >= margin / slope / unit).all()
    # without biases the origin breaks every point
    assert (here.upper.values <= x.norm(dim=1).numpy() / unit + 1e-9).all()
    np.testing.assert_allclose(here.lower, here.upper, rtol=1e-6)


def test_the_gap_and_its_error_agree_with_leaving_images_out_one_by_one(bench):
    outcome = fig10.run(MAP, bench)
    data, reading = outcome.data, "raw"
    cosine, label = data.correlation.sel(reading=reading).values.astype(float), data.label.values

    def gap(keep):
        c, y = cosine[np.ix_(keep, keep)], label[keep]
        one, upper = y[:, None] == y, np.triu(np.ones((len(y), len(y)), bool), 1)
        return c[one & upper].mean() - c[~one & upper].mean()

    n = len(label)
    left = np.array([gap(np.delete(np.arange(n), i)) for i in range(n)])
    error = 1.96 * np.sqrt((n - 1) / n * ((left - left.mean()) ** 2).sum())
    found = fig10.gap_of(data, reading)
    assert (found.value, found.spread) == pytest.approx((gap(np.arange(n)), error), rel=1e-5)
    assert (found.n, found.over) == (n, "images")


def test_pseudo_values_have_the_cosine_of_all_images_and_its_error():
    """Two classes whose means have cosine 1/2; the spread of their cosine over many draws is the error."""
    rng, y = np.random.default_rng(3), torch.arange(200) % 2
    mu = torch.tensor([[2.0, 0.0, 0.0], [1.0, 3**0.5, 0.0]], dtype=torch.float64)
    drawn = [mu[y] + torch.from_numpy(rng.normal(size=(200, 3))) for _ in range(300)]
    cosines = [float(fig10.cosines_of(fig10.class_means(x, y))[0, 1]) for x in drawn]
    pseudo = [fig10.jackknifed(x, y)[:, 0, 1].numpy() for x in drawn]
    assert pseudo[0].mean() == pytest.approx(cosines[0], abs=0.01)
    error = np.mean([p.std(ddof=1) / np.sqrt(len(p)) for p in pseudo])
    assert error == pytest.approx(np.std(cosines), rel=0.15)


def test_orthogonal_embeddings_pass_every_claim(bench, orthogonal):
    config = Correlations(orthogonal, train=180, test=60, each=20)
    outcome = fig10.run(config, bench)
    assert verdicts(outcome) == {
        "clustered.raw": "holds", "clustered.centred": "as predicted", "orthogonal": "as predicted",
    }  # fmt: skip
    # k centred means of one norm are a simplex: -1/(k-1)
    means = outcome.data.of_means.sel(reading="centred").values
    assert means[~np.eye(6, dtype=bool)].mean() == pytest.approx(-1 / 5, abs=0.01)
    assert len(fig10.draw(outcome.data, config).axes) == 8


def test_embeddings_without_clusters_are_told_apart(bench, monkeypatch):
    x = torch.randn(200, 40, generator=torch.Generator().manual_seed(5)).abs()
    part = Features(x, torch.arange(200) % 4, ("a", "b", "c", "d"))
    monkeypatch.setattr(fig10, "embeddings_of", lambda config, bench: Embeddings(part, part))
    found = verdicts(fig10.run(Correlations(each=50), bench))
    assert found["clustered.raw"] in ("differs", "undecided")
    assert found["orthogonal"] == "not as predicted"  # all positive: one cone


def test_a_row_of_zeros_has_cosine_zero():
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], dtype=torch.float64)
    assert fig10.cosines_of(x).tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_what_is_not_the_papers_is_told_before_the_work(bench):
    assert "CLIP" in (fig10.substitute(Correlations(), bench) or "")
    assert fig10.substitute(Correlations(extractor="open_clip:ViT-B-32/openai"), bench) is None
    assert fig10.substitute(MAP, replace(bench, scale="smoke")) is None


def test_claims_say_at_every_scale_that_the_data_are_others():
    for exhibit in EXHIBITS[-2:]:
        for config in exhibit.scales.values():
            assert fig10.regime_of(config).startswith("other data: ")
            papers = replace(config, dataset="cifar10", extractor="open_clip:ViT-B-32/openai")
            assert fig10.regime_of(papers).startswith("inside: ")


@pytest.mark.parametrize(
    ("config", "settings", "words"),
    [(PAIRS, {"h": 0}, "h=0"), (PAIRS, {"T": (0,)}, "T=0"), (PAIRS, {"T": (5, 5)}, "each value once"),
     (PAIRS, {"eta": 0.0}, "eta=0"), (MAP, {"each": 1}, "each=1"), (MAP, {"test": 0}, "test=0")],
)  # fmt: skip
def test_impossible_settings_are_refused(config, settings, words):
    with pytest.raises(CallError, match=words):
        replace(config, **settings)


def test_the_entries_load():
    assert [exhibit.id for exhibit in EXHIBITS[-2:]] == ["li2025.fig2cd", "li2025.fig10"]
    for exhibit in EXHIBITS[-2:]:
        assert callable(exhibit.load().run)
