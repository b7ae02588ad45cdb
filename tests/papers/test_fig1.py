"""min2024.fig1 and min2025.alpha0: neurons from a small start, in pictures."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import assume, given
from hypothesis import strategies as st

from benches import new_bench, verdicts
from tacit.errors import CallError, RunError
from tacit.measure import alignment_field
from tacit.nets import TwoLayerNet
from tacit.papers._shared.sphere import balanced_start, moments, seen, view
from tacit.papers.min2024.fig1 import exhibit as fig1
from tacit.papers.min2024.fig1.settings import Spheres
from tacit.papers.min2025.alpha0 import exhibit as alpha0
from tacit.papers.min2025.alpha0.settings import Circle
from tacit.report.animation import drawn, in_one_palette
from tacit.report.style import house_style
from tacit.train import History, Until, gradient_flow


@pytest.fixture(scope="module")
def bench():
    return new_bench(seed=7)


SPHERES = Spheres(h=30, n=30, frames=24, repeats=6)
CIRCLE = Circle(h=24, frames=24, repeats=3)


@pytest.fixture(scope="module")
def spheres(bench):
    return fig1.run(SPHERES, bench)


@pytest.fixture(scope="module")
def circles(bench):
    return alpha0.run(CIRCLE, bench)


def test_figure_1_says_what_the_caption_says_but_for_one_note(spheres):
    found = verdicts(spheres)
    assert found.pop("elsewhere.p3") == "differs"
    made = {claim.id: claim for claim in spheres.claims}
    # neurons of one training are not independent: six trainings of six show it of more than half
    at_one = made["elsewhere.p1"]
    assert (at_one.measured, at_one.n, at_one.over) == (1, 6, "trainings")
    assert set(found.values()) == {"holds"}
    assert {"averages", "centres", "every", "settle.p1", "settle.p3", "small"} <= set(found)
    assert {(made[id].n, made[id].over) for id in ("averages", "settle.p3")} == {(6, "trainings")}


def test_one_training_decides_nothing_about_the_next(bench):
    alone = fig1.run(replace(SPHERES, repeats=1), bench)
    found = verdicts(alone)
    assert {found[id] for id in ("averages", "centres", "every", "settle.p1", "small")} == {
        "undecided"
    }


@pytest.mark.parametrize(
    ("tolerance", "degrees"), [(fig1.TOLERANCE, 3.0), (fig1.TOLERANCE / 10, 0.5)]
)
@pytest.mark.parametrize("p", [1.0, 3.0])
def test_the_recorded_neurons_are_those_of_plain_gradient_descent(
    p, tolerance, degrees, bench, monkeypatch
):
    """Small steps on the weights themselves, with the gradient by autograd, from a start that is not so small.

    A tenth of the flow's tolerance leaves about a tenth of the angle.
    """
    monkeypatch.setattr(fig1, "TOLERANCE", tolerance)
    config = replace(SPHERES, eps=0.1, time=12.0, frames=4, repeats=1, h=12)
    data = fig1.run(config, bench).data.sel(p=p)
    points = fig1.draw_samples(config, bench, bench.seed)
    start = balanced_start(config.h, 3, config.eps, bench.generator("start", seed=bench.seed))
    w, v = start.w.clone().requires_grad_(), start.v.clone().requires_grad_()
    step = 0.02
    for _ in range(round(config.time / step)):
        loss = torch.exp(-points.y * TwoLayerNet(w, v, p=p)(points.x)).mean()
        for part, slope in zip((w, v), torch.autograd.grad(loss, (w, v)), strict=True):
            part.data -= step * slope
    u = (w / w.norm(dim=1, keepdim=True)).detach().numpy()
    mass = (w.norm(dim=1) * v.abs()).detach().numpy()
    last = data.isel(time=-1)
    heavy = mass > 0.05 * mass.max()
    cosine = (u * last.direction.values).sum(1)[heavy]
    assert cosine.min() > math.cos(math.radians(degrees))
    assert last.each_mass.values[heavy] == pytest.approx(mass[heavy], rel=0.02)
    assert float(last.loss.isel(seed=0)) == pytest.approx(loss.item(), rel=0.02)


def test_settled_is_the_moment_after_the_last_large_angle():
    angle = np.array(
        [[40.0, 4.0, 6.0, 4.0, 0.0], [40.0, 30.0, 20.0, 10.0, 0.0], [1.0, 2.0, 1.0, 1.0, 0.0]]
    )
    data = xr.Dataset({"angle": (("seed", "time"), angle)})
    assert fig1.settled(data).values.tolist() == [3, 4, 0]


def test_neurons_elsewhere_are_counted_by_hand():
    # at the average; at a centre, which p = 1 has not learned; away from all data; a negative one at mu_1
    end = torch.tensor(
        [[0.5**0.5, 0.5**0.5, 0.0], [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    ).double()
    mass = torch.tensor([[1e-4, 1e-2, 1e-6, 1e-6], [4.0, 1e-4, 1e-6, 1e-6]]).double()
    none = torch.zeros(2).double()
    sign = torch.tensor([[1.0, 1.0, 1.0, -1.0]]).double().expand(2, 4)
    past = History(none, none, none, none, mass.log(), sign, end.expand(2, 4, 3))
    x = torch.eye(3).double()
    found = fig1.neurons_elsewhere(past, *fig1.LEARNED[1.0], x)
    assert (found.number, found.active) == (3, 2)
    assert found.norm == pytest.approx(math.sqrt(1e-2 / 4))


def test_alpha0_says_what_the_poster_says(circles):
    found = verdicts(circles)
    assert {found.pop(f"p{p}.learned") for p in (1, 3)} == {"holds"}
    # said of every start: three of three do not show it of nine in ten
    assert {claim.measured for claim in circles.claims if claim.id in found} == {1.0}
    assert set(found.values()) == {"undecided"}
    assert {"p1.average", "p2.still", "p3.closer", "p1.field", "p1.lone"} <= set(found)
    assert {(claim.n, claim.over) for claim in circles.claims} == {(3, "starts")}


def test_the_field_alone_follows_its_closed_forms():
    phi = np.linspace(0.02, 1.55, 40)[None]
    times = np.array([0.0, 0.3, 2.0])

    def at(angle, p, sign=1.0):
        return alpha0.followed(angle, np.full_like(phi, sign), p, times)

    t = times[None, :, None]
    psi, tangent = phi[:, None] - np.pi / 4, np.tan(phi)[:, None]
    average = np.pi / 4 + 2 * np.arctan(np.tan(psi / 2) * np.exp(-math.sqrt(2) * t))
    assert at(phi, 1.0) == pytest.approx(average, abs=1e-4)
    assert at(phi, 2.0) == pytest.approx(np.broadcast_to(phi[:, None], average.shape), abs=1e-12)
    # one centre alone: tan(phi/2) falls as e^-t at p = 1, tan(phi) as e^-2t at p = 2, and grows for v < 0
    lone = -2 * np.arctan(np.tan(phi / 2)[:, None] * np.exp(-t))
    assert at(-phi, 1.0) == pytest.approx(lone, abs=1e-4)
    assert at(-phi, 2.0) == pytest.approx(-np.arctan(tangent * np.exp(-2 * t)), abs=1e-3)
    assert at(-phi, 2.0, -1.0) == pytest.approx(-np.arctan(tangent * np.exp(2 * t)), abs=1e-3)


@given(
    st.floats(-math.pi, math.pi),
    st.sampled_from([1.0, 1.25, 2.0, 3.0, 4.5]),
    st.sampled_from([1.0, -1.0]),
)
def test_the_field_in_angles_is_the_alignment_field(phi, p, sign):
    assume(min(abs(math.cos(phi)), abs(math.sin(phi))) > 1e-6)  # at a kink either side is right
    u = torch.tensor([[math.cos(phi), math.sin(phi)]], dtype=torch.float64)
    pull = sign * alignment_field(u, alpha0.CENTRES, alpha0.LABELS, p)[0]
    turn = float(pull[1] * u[0, 0] - pull[0] * u[0, 1])
    assert alpha0.turning(np.array(phi), np.array(sign), p) == pytest.approx(turn, abs=1e-9)


def test_a_field_that_is_not_followed_is_noticed(circles, bench):
    """The test of the test: neurons that turn by five degrees do not follow the field, nor are they still."""
    data = circles.data.copy(deep=True)
    data.phi.loc[{"p": 2.0}] += 5.0 * (data.time > 0) * (data.seed == data.seed[0])
    found = {claim.id: claim for claim in alpha0.claims(data, CIRCLE, bench)}
    for id in ("p2.still", "p2.field"):
        assert (found[id].verdict, found[id].deterministic) == (
            "differs",
            "one of the starts beyond the bound is a counterexample",
        )


def test_a_claim_about_neurons_that_are_not_there_is_not_decided(bench):
    found = {
        claim.id: claim
        for claim in alpha0.run(
            replace(CIRCLE, h=2, repeats=1, p=(3.0,), eps=1e-2, time=2.0, frames=4), bench
        ).claims
    }
    empty = [claim for claim in found.values() if claim.measured is None]
    assert empty
    assert {claim.verdict for claim in empty} == {"not testable here"}


@given(st.floats(0, 360), st.floats(-89, 89))
def test_the_picture_is_seen_from_where_the_viewer_stands(azimuth, elevation):
    frame = view(azimuth, elevation)
    assert frame @ frame.T == pytest.approx(np.eye(3), abs=1e-12)
    assert np.linalg.det(frame) == pytest.approx(1.0)
    place, depth = seen(frame[2], frame)
    assert place == pytest.approx([0.0, 0.0], abs=1e-12)
    assert depth == pytest.approx(1.0)
    # what is higher is seen higher
    assert seen(np.array([0.0, 0.0, 1.0]), frame)[0][1] == pytest.approx(
        math.cos(math.radians(elevation))
    )


@pytest.mark.parametrize(
    ("module", "config", "name"), [(fig1, SPHERES, "spheres"), (alpha0, CIRCLE, "circles")]
)
def test_the_animation_has_a_frame_for_each_moment_and_moves(module, config, name, request):
    data = request.getfixturevalue(name).data
    with house_style():
        module.draw(data, config)
        frames = list(drawn(module.animate(data, config)))
    assert len(frames) == config.frames
    first, middle, last = (np.asarray(frames[i], dtype=float) for i in (0, len(frames) // 2, -1))
    for one, other in ((first, middle), (middle, last)):
        assert 0.001 < (np.abs(one - other).max(-1) > 30).mean() < 0.5
    few = np.asarray(in_one_palette(frames)[-1].convert("RGB"), dtype=float)
    assert np.abs(few - last).mean() < 4
    assert (few[0] == 255).all(), "white stays white"


def test_a_flow_that_ends_early_is_told_of():
    start = balanced_start(6, 2, 0.01, torch.Generator().manual_seed(0))
    x, y = torch.eye(2).double(), torch.ones(2).double()
    flowed = gradient_flow(
        start, x, y, until=Until(time=1.0), record=[0.5, 1.0, 2.0], watch=torch.eye(2)
    )
    with pytest.raises(RunError, match=r"ended at t = 1, before the last moment.*more neurons"):
        moments(flowed, start.w[None], start.v[None], 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Spheres(h=2), "h=2"),
        (lambda: Spheres(n=2), "n=2"),
        (lambda: Spheres(alpha=-0.1), r"alpha=-0\.1"),
        (lambda: Spheres(eps=0.0), r"eps=0\.0"),
        (lambda: Spheres(eps=1.0), r"eps=1\.0"),
        (lambda: Spheres(time=0.5), r"time=0\.5"),
        (lambda: Spheres(frames=2), "frames=2"),
        (lambda: Spheres(repeats=0), "repeats=0"),
        (lambda: Circle(h=1), "h=1"),
        (lambda: Circle(p=(0.5,)), r"p=0\.5"),
        (lambda: Circle(p=(3.0, 3.0)), "each value once"),
        (lambda: Circle(eps=0.5), r"eps=0\.5"),
    ],
)
def test_impossible_settings_are_refused(make, words):
    with pytest.raises(CallError, match=words):
        make()
