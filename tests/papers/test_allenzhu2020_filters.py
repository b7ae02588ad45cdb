"""allenzhu2020's figures 1, 8 and 9: filters as pictures, over epochs, taken apart; claims on made-up data."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from benches import new_bench, verdicts
from tacit.errors import CallError
from tacit.lab.parts import DiskParts
from tacit.measure.features.spectrum import cosines
from tacit.nn.alexnet import AlexNet
from tacit.nn.residual import PreActResNet
from tacit.papers._shared.deep import deep_trainings
from tacit.papers.allenzhu2020.deep.claims import all_positive
from tacit.papers.allenzhu2020.deep.filters import filters_of, looked_at, net_of, patches, seen
from tacit.papers.allenzhu2020.deep.nets import alex_jobs, alex_nets, alex_start, images_of
from tacit.papers.allenzhu2020.deep.settings import ALEX_LAPTOP, ALEX_SMOKE, Alex
from tacit.papers.allenzhu2020.fig1 import exhibit as fig1
from tacit.papers.allenzhu2020.fig1.claims import claims as fig1_claims
from tacit.papers.allenzhu2020.fig1.settings import Purified
from tacit.papers.allenzhu2020.fig8 import exhibit as fig8
from tacit.papers.allenzhu2020.fig8.claims import claims as fig8_claims
from tacit.papers.allenzhu2020.fig8.claims import foretold, larger_half
from tacit.papers.allenzhu2020.fig8.settings import Tickets
from tacit.papers.allenzhu2020.fig9 import exhibit as fig9
from tacit.papers.allenzhu2020.fig9.claims import claims as fig9_claims
from tacit.papers.allenzhu2020.fig9.settings import Summary
from tacit.train.deep.fit import Watch

TINY = Alex(**ALEX_SMOKE | {"train": 64, "clean_epochs": 1})
N = 64


def draws(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# the filters of a net


def test_filters_are_the_first_layers_weights_and_small_ones_are_refused_in_one_line():
    net = AlexNet(10, 1, 4)
    assert torch.equal(filters_of(net), net.layers[0].weight)
    assert not filters_of(net).requires_grad
    with pytest.raises(CallError, match="filters are 3 x 3 pixels: nothing can be seen") as refused:
        filters_of(PreActResNet(10, 1))
    assert "\n" not in str(refused.value)
    assert "AlexNet's 11 x 11" in str(refused.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Purified(width=1), "width=1"),
        (lambda: Purified(patches=1), "patches=1"),
        (lambda: Tickets(width=3), "width=3.*half of the filters win"),
        (lambda: Tickets(clean_epochs=1), "clean_epochs=1"),
        (lambda: Tickets(width=8, shown=5), "shown=5: of 8 filters 4 win"),
        (lambda: Summary(width=2), "width=2"),
        (lambda: Summary(again=0), "again=0"),
    ],
)
def test_settings_are_refused_in_one_line(make, said):
    with pytest.raises(CallError, match=said) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_what_weight_decay_leaves_is_that_of_steps_without_a_gradient():
    """Momentum .9 on w' = -decay w alone, the step falling as a cosine."""
    config = Alex(train=640, batch=64, step=0.02, decay=0.01)
    w, v, steps = 1.0, 0.0, 10 * 200
    for t in range(steps):
        v = 0.9 * v + config.decay * w
        w -= config.step * (1 + math.cos(math.pi * t / steps)) / 2 * v
    assert config.batches == 10
    assert config.left_of_start(200) == pytest.approx(w, rel=0.02)


def test_a_short_training_says_so_and_the_papers_is_long_enough():
    assert Purified().too_short == ""
    assert Alex().batches == 390
    assert "leaves 95% of the start" in Purified(**ALEX_LAPTOP).too_short


def test_every_net_goes_on_from_where_it_should():
    """Without a step size, all are where they began."""
    bench = new_bench(scale="smoke")
    nets = alex_nets(TINY, bench)
    assert torch.equal(filters_of(net_of(TINY, bench, "random")), filters_of(nets["random"]))
    for name in ("clean", "robust"):
        assert torch.equal(filters_of(net_of(TINY, bench, name)), filters_of(nets[name]))
    still = replace(TINY, step=1e-30)
    same = [filters_of(net_of(still, bench, name, 1)) for name in ("random", "longer", "again")]
    assert all(torch.allclose(same[0], each) for each in same[1:])
    longer, again = (filters_of(net_of(TINY, bench, name, 1)) for name in ("longer", "again"))
    assert not torch.equal(longer, filters_of(nets["clean"]))
    assert not torch.equal(again, filters_of(nets["robust"]))


def test_patches_are_cut_from_standardised_training_images():
    bench, images = new_bench(scale="smoke"), images_of(TINY)
    few = patches(TINY, bench, 50, 3)
    assert few.shape == (50, 1, 3, 3)
    x = alex_start(TINY, bench, images).standard(images.x.permute(0, 3, 1, 2).float() / images.top)
    every = x.unfold(2, 3, 1).unfold(3, 3, 1).permute(0, 2, 3, 1, 4, 5).reshape(-1, 9)
    distance = (few.flatten(1).unsqueeze(1) - every).abs().amax(2).amin(1)
    assert float(distance.max()) < 1e-5
    assert patches(TINY, bench, 4, 11).shape == (4, 1, 8, 8)  # digits are smaller than filters


def test_a_net_is_looked_at_as_it_is():
    bench = new_bench(scale="smoke")
    data = looked_at(TINY, bench, "random", points=20)
    net = net_of(TINY, bench, "random")
    x, y = images_of(TINY).tested(20, "cpu")
    assert np.array_equal(data["filter"].values, filters_of(net).numpy())
    assert np.array_equal(data.plain.values > 0, (net(x).argmax(1) == y).numpy())
    assert np.allclose(data.spectrum.sum("band"), 1)
    assert np.array_equal(data.coarse, data.spectrum.isel(band=0))


def test_smooth_pictures_are_coarse_and_have_little_variation():
    edge = torch.linspace(-1, 1, 11).sign().expand(1, 3, 11, 11)
    smooth, noise = seen(edge), seen(draws(200, 3, 11, 11))
    assert smooth.coarse.item() > 0.8
    assert float(noise.coarse.mean()) == pytest.approx(7 / 120, abs=0.005)
    assert smooth.variation.item() < float(noise.variation.min())


# figure 1


def compared(coarse: dict[str, float], *, turned: float = 0.1, held: float = 0.95) -> xr.Dataset:
    """Filters whose shares of coarse shapes are these, their variation 1 less that; patches of .9 and .1."""
    nets = ["random", "clean", "robust", "longer"]
    noise = 0.02 * draws(N).numpy()
    each = np.array([coarse[name] for name in nets])[:, None] + noise * np.array(
        [[0], [1], [-1], [1]]
    )
    spectrum = np.stack([each, 1 - each], 2)
    robust = np.array([0.0, 0.1, 0.4, 0.1])[:, None] > np.linspace(0, 1, 200)
    angle = np.ones(N) + 0.01 * noise
    return xr.Dataset(
        {
            "coarse": (("net", "neuron"), each),
            "variation": (("net", "neuron"), 1 - each),
            "spectrum": (("net", "neuron", "band"), spectrum),
            "natural_variation": ("patch", np.full(10, 0.1)),
            "natural_spectrum": (("patch", "band"), np.tile([0.9, 0.1], (10, 1))),
            "own": (("net", "point"), robust.astype(float)),
            "start_clean": ("neuron", turned * angle),
            "start_robust": ("neuron", turned * angle),
            "clean_robust": ("neuron", held * angle),
        },
        coords={"net": nets},
    )


def test_purification_is_seen_where_it_is_and_not_where_it_is_not():
    config, bench = Purified(), new_bench(scale="paper")
    pure = compared({"random": 0.1, "clean": 0.4, "robust": 0.6, "longer": 0.45})
    found = verdicts(list(fig1_claims(pure, config, bench)))
    ours = {"beyond", "natural"}
    assert found == {id: "as predicted" if id in ours else "holds" for id in found}
    mixed = compared(
        {"random": 0.1, "clean": 0.6, "robust": 0.4, "longer": 0.65}, turned=0.5, held=0.3
    )
    wrong = verdicts(list(fig1_claims(mixed, config, bench)))
    assert wrong.pop("robust") == "holds"
    assert {wrong.pop(id) for id in ours} == {"not as predicted"}
    assert set(wrong.values()) == {"differs"}


def test_more_training_alone_is_no_purification():
    """Filters that clean training would have made as smooth: coarser than before, but not beyond."""
    data = compared({"random": 0.1, "clean": 0.4, "robust": 0.6, "longer": 0.7})
    found = verdicts(list(fig1_claims(data, Purified(), new_bench(scale="paper"))))
    assert found["coarse"] == "holds"
    assert found["beyond"] == "not as predicted"


def test_a_short_training_does_not_judge_how_far_filters_turned():
    data = compared({"random": 0.1, "clean": 0.4, "robust": 0.6, "longer": 0.45}, turned=0.9)
    made = {c.id: c for c in fig1_claims(data, Purified(**ALEX_LAPTOP), new_bench())}
    for id in ("same", "start.clean", "start.robust"):
        assert made[id].verdict == "not testable here"
        assert "--scale paper" in made[id].reason
    assert made["coarse"].verdict == "holds"


def test_fewer_than_two_pairs_are_not_judged():
    data = xr.DataArray([1.0, np.nan])
    judge = new_bench().claims("here", source="ours", bar="ours: any", regime="outside: made up")
    claim = all_positive(judge, "id", "text", {"a": ("what", data, data)}, over="filters")
    assert claim.verdict == "not testable here"


def test_figure_1_resumes_without_its_nets(tmp_path, monkeypatch):
    config = Purified(**ALEX_SMOKE | {"train": 64, "clean_epochs": 1}, points=8, patches=8)
    monkeypatch.setenv("TACIT_MODELS", str(tmp_path / "models"))
    bench = replace(new_bench(scale="smoke"), parts=DiskParts(tmp_path))
    first = fig1.run(config, bench)
    monkeypatch.setenv("TACIT_MODELS", str(tmp_path / "none"))
    again = fig1.run(config, replace(bench, parts=DiskParts(tmp_path)))
    assert again.data.identical(first.data)
    assert not (tmp_path / "none").exists()
    left, right = fig1.draw(first.data, config).axes[:2]
    assert left.images[0].get_array().shape == right.images[0].get_array().shape


# figure 8


def test_the_larger_half_and_what_is_foretold():
    assert larger_half([3.0, 1.0, 2.0, 5.0]).tolist() == [True, False, False, True]
    assert larger_half([3.0, 1.0, 2.0]).tolist() == [True, False, False]
    last, early = xr.DataArray([1.0, 2.0, 3.0, 4.0]), xr.DataArray([4.0, 1.0, 2.0, 3.0])
    assert (foretold(last, last).value, foretold(early, last).value) == (1.0, 0.5)
    assert foretold(-last, last).value == 0.0
    assert foretold(last, last).low < 0.5  # two of two are no proof


def test_responses_are_those_of_the_layer_itself():
    """sqrt(<w, S w>) is the standard deviation of the convolution's outputs."""
    images = images_of(TINY)
    net = alex_start(TINY, new_bench(scale="smoke"), images)
    S = fig8.covariance(net, images, 40)
    x = images.x[:40].permute(0, 3, 1, 2).float() / images.top
    with torch.no_grad():
        out = net.output_of(1, x).double()
    w = filters_of(net).flatten(1).double()
    found = (w @ S * w).sum(1).sqrt()
    assert torch.allclose(found, out.transpose(0, 1).flatten(1).std(1), rtol=1e-4)


def test_filters_that_grow_along_the_data_are_told_from_those_that_grow_alike():
    config = Tickets(width=4, clean_epochs=2, shown=2)
    start = draws(4, 1, 5, 5).float()
    S = torch.diag(torch.tensor([9.0] * 5 + [1.0] * 20)).double()
    along = torch.cat([3 * start.flatten(1)[:, :5], start.flatten(1)[:, 5:]], 1).view_as(start)
    sizes = torch.tensor([1.0, 4.0, 2.0, 3.0]).view(-1, 1, 1, 1)
    alike = fig8.measured(torch.stack([start, start, 2 * start]), S, config)
    assert np.allclose([alike.multiple, alike.multiple_seen], 2)
    assert np.allclose(alike.from_start, 1)
    faster = fig8.measured(torch.stack([start, start, along]), S, config)
    assert (faster.multiple_seen > faster.multiple).all()
    unit = start / start.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    grown = fig8.measured(torch.stack([start, start, sizes * unit]), S, config)
    assert grown.shown.values.tolist() == [1, 3, 2, 0]
    assert grown.won.values.tolist() == [0, 1, 0, 1]
    assert np.allclose(grown.norm.isel(epoch=-1), [1, 4, 2, 3])
    assert np.allclose(grown.picture.sel(frame=0, shown=3), start[3])


def test_frames_begin_early_and_end_at_the_end():
    assert Tickets().frames == (0, 1, 2, 5, 10, 20, 40, 60)
    assert Tickets(clean_epochs=2).frames == (0, 1, 2)
    assert (Tickets().quarter, Tickets().tenth) == (15, 6)


def course(*, foreseen: bool, faster: bool) -> xr.Dataset:
    """64 filters over 60 epochs; winners can be seen from the start on, or not before the last epoch."""
    rng = np.random.default_rng(0)
    last = np.linspace(0.5, 2, N)
    shuffled = last if foreseen else last[::-1]
    norm = np.stack([shuffled] * 60 + [last])
    multiple = rng.normal(1, 0.1, N)
    return xr.Dataset(
        {
            "norm": (("epoch", "neuron"), norm),
            "response": (("epoch", "neuron"), norm),
            "from_start": (("epoch", "neuron"), norm / 2),
            "multiple": ("neuron", multiple),
            "multiple_seen": ("neuron", multiple + (1 if faster else -1) + rng.normal(0, 0.1, N)),
        },
        coords={"epoch": np.arange(61)},
    )


def test_winners_that_are_seen_at_the_start_are_told_from_those_that_are_not():
    bench = new_bench(scale="paper")
    right = verdicts(list(fig8_claims(course(foreseen=True, faster=True), Tickets(), bench)))
    ours = {"leaning", "quarter"}
    assert right == {id: "as predicted" if id in ours else "holds" for id in right}
    wrong = verdicts(list(fig8_claims(course(foreseen=False, faster=False), Tickets(), bench)))
    assert wrong.pop("leaning") == "as predicted"  # the last epoch alone
    assert wrong.pop("quarter") == "not as predicted"
    assert set(wrong.values()) == {"differs"}


def test_epochs_of_few_steps_do_not_judge_the_first_one():
    short = Tickets(**ALEX_LAPTOP | {"clean_epochs": 60})
    made = {c.id: c for c in fig8_claims(course(foreseen=True, faster=True), short, new_bench())}
    for id in ("first", "kept"):
        assert made[id].verdict == "not testable here"
        assert "39 steps" in made[id].reason
    assert made["quarter"].verdict == "as predicted"


def test_the_followed_training_is_the_clean_one():
    """Its first look is the random net, its last one the net that figure 1 shows."""
    config = Tickets(**ALEX_SMOKE | {"train": 64}, shown=2, seen=20)
    bench = new_bench(scale="smoke")
    job = replace(alex_jobs(config, bench, images_of(config))["clean"], watch=Watch(filters_of))
    watched = deep_trainings(bench, {"clean": job})["clean"].watched
    data = fig8.followed(config, bench)
    assert np.array_equal(watched[0], filters_of(net_of(config, bench, "random")))
    assert np.array_equal(watched[-1], filters_of(net_of(config, bench, "clean")))
    assert np.array_equal(data.picture.isel(frame=-1), watched[-1][data.shown.values])


# figure 9


def test_a_filter_is_its_pure_part_and_what_is_removed():
    w, pure = draws(5, 3, 4, 4), draws(5, 3, 4, 4, seed=1)
    left = fig9.beside(w, pure)
    assert torch.allclose((left * pure).sum((1, 2, 3)), torch.zeros(5, dtype=torch.float64))
    part = (w - left).flatten(1)
    cosine = torch.nn.functional.cosine_similarity(part, pure.flatten(1)).abs()
    assert torch.allclose(cosine, torch.ones_like(cosine))


def test_likeness_and_spread_in_closed_form():
    rows = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, -3.0]])
    assert fig9.likeness(rows).tolist() == [0.5, 0.5, 0.0]
    wave = torch.cos(math.pi / 16 * 3 * (2 * torch.arange(8) + 1)).expand(1, 1, 8, 8)
    assert float(fig9.spread_over(wave)) == pytest.approx(1.0)
    assert float(fig9.spread_over(draws(50, 3, 11, 11)).mean()) == pytest.approx(120, abs=5)


def world(*, mixed: bool) -> dict[str, torch.Tensor]:
    """Smooth filters; clean ones have one noise picture added to all. Or the other way round: alike and noisy,
    and clean ones have each a large smooth picture of its own more, of which again there is the opposite."""
    table = cosines(11)
    few = torch.zeros(N, 3, 11, 11, dtype=torch.float64)
    few[:, :, :3, :3] = 2 * draws(N, 3, 3, 3)
    smooth = table.T @ few @ table  # waves of a tenth of a cycle a pixel
    shared, own = draws(1, 3, 11, 11, seed=2), 0.05 * draws(N, 3, 11, 11, seed=3)
    noisy = shared + own
    if mixed:
        three = smooth, smooth + 0.15 * noisy, smooth + 0.1 * noisy
    else:
        three = noisy, noisy + 3 * smooth, noisy - smooth
    random = draws(N, 3, 11, 11, seed=5)
    return {"random": random, "clean": three[1], "robust": three[0], "again": three[2]}


def summary(filters: dict[str, torch.Tensor], again: float) -> xr.Dataset:
    own = np.array([0.1, 0.0, 0.5, again])[:, None] > np.linspace(0, 1, 300)
    kept = xr.Dataset(
        {name: (("net", "point"), own.astype(float)) for name in ("own", "plain")},
        coords={"net": list(filters)},
    )
    return xr.merge([kept, fig9.taken_apart(filters)])


def test_a_mixture_is_found_where_it_is_and_not_where_it_is_not():
    config, bench = Summary(), new_bench(scale="paper")
    data = summary(world(mixed=True), 0.1)
    found = verdicts(list(fig9_claims(data, config, bench)))
    assert set(found.values()) == {"holds"}
    other = verdicts(list(fig9_claims(summary(world(mixed=False), 0.9), config, bench)))
    assert other == dict.fromkeys(found, "differs")
    assert len(fig9.draw(data, config).axes) == 6


def test_a_short_training_does_not_judge_what_comes_back():
    config = Summary(**ALEX_LAPTOP)
    found = verdicts(list(fig9_claims(summary(world(mixed=True), 0.1), config, new_bench())))
    open_ones = {"small", "dense", "common", "again.coarse", "again.variation", "again.same"}
    assert {id for id, verdict in found.items() if verdict == "not testable here"} == open_ones
    assert found["again.robust"] == "holds"
