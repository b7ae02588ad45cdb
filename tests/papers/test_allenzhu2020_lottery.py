"""allenzhu2020.lottery: sets, gradients and the film against direct computations."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from benches import verdicts
from tacit.data.sparse_coding import SparseSamples
from tacit.errors import CallError
from tacit.lab import Bench
from tacit.nets import SymmetricNet
from tacit.papers.allenzhu2020._shared import nets
from tacit.papers.allenzhu2020._shared.nets import trained
from tacit.papers.allenzhu2020._shared.settings import SMOKE
from tacit.papers.allenzhu2020.lottery import exhibit
from tacit.papers.allenzhu2020.lottery.settings import Lottery

SMALL = Lottery(
    **{**SMOKE, "clean_steps": (30, 40), "pure_steps": 20},
    repeats=2, moments=(0, 10, 30, 70), points=60, shown=2, frames=6,
)  # fmt: skip


def test_what_the_settings_refuse() -> None:
    for changed, said in (
        ({"moments": (0, 10)}, "end with"),
        ({"gamma": 0.2}, "at most 0.1"),
        ({"m": 100}, "more neurons"),
    ):
        with pytest.raises(CallError, match=said):
            Lottery(**changed)


def test_phase_and_excess() -> None:
    config = Lottery()
    assert config.phase == pytest.approx(200**2 * 0.003 / (6 * 0.2))
    assert 200 ** (1 + config.excess) == pytest.approx(2000)


def test_the_bias_settles_when_its_schedule_says(bench: Bench) -> None:
    for config in (SMALL, replace(SMALL, clean_steps=(5, 65), moments=(0, 10, 70))):
        nets = [
            shot.net for shot in exhibit.clean_course(config, bench, 0, list(range(71))).history
        ]
        top = config.ceiling / math.sqrt(config.k)
        reached = [i for i, net in enumerate(nets) if float(net.b[0]) >= top * (1 - 1e-6)]
        assert config.settled == (reached[0] if reached else 70)
    assert Lottery().settled == 372


def test_the_pull_along_M_w_star_is_minus_the_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(4, 6, generator=generator, dtype=torch.float64)
    net = SymmetricNet(w, torch.full((4,), 0.2, dtype=torch.float64), 0.1)
    x = torch.randn(50, 6, generator=generator, dtype=torch.float64)
    y = torch.where(x[:, 0] > 0, 1.0, -1.0).double()
    dense = torch.ones(6, dtype=torch.float64)
    leaf = w.clone().requires_grad_()
    loss = torch.log1p(torch.exp(-y * SymmetricNet(leaf, net.b, 0.1)(x))).mean()
    (by_w,) = torch.autograd.grad(loss, leaf)
    found = exhibit.pull_at(SparseSamples(x, y, x), dense, net)
    assert found["pull"] == pytest.approx(float((-by_w @ dense).mean()), rel=1e-9)
    assert found["pulled"] == pytest.approx(float(((-by_w @ dense) > 0).double().mean()))


def test_the_training_followed_is_the_one_in_the_store(bench: Bench) -> None:
    kept = trained(SMALL, bench, [0], {"clean": SMALL.clean})["clean", 0]
    done = exhibit.clean_course(SMALL, bench, 0, [70])
    torch.testing.assert_close(done.net.w, kept.w, rtol=0, atol=1e-5)


def test_who_asks_after_the_lottery_need_not_train(bench: Bench, monkeypatch) -> None:
    done = exhibit.clean_course(SMALL, bench, 0, [70])
    monkeypatch.setattr(nets, "last_legs", lambda *_: pytest.fail("trained again"))
    kept = trained(SMALL, bench, [0], {"clean": SMALL.clean})["clean", 0]
    assert torch.equal(done.net.w, kept.w)


@pytest.fixture(scope="module")
def followed():
    from benches import new_bench

    bench = new_bench()
    return bench, exhibit.run(SMALL, bench)


def test_a_small_run(followed) -> None:
    _, outcome = followed
    data = outcome.data
    assert data.film.shape == (data.sizes["frame"], 2, 40)
    assert bool((np.diff(data.film_step) > 0).all())
    assert int(data.film_step[-1]) == 90
    assert float(data.sure.isel(moment=0, seed=0)) in (1.0, pytest.approx(math.nan, nan_ok=True))
    assert data.loss.sizes["step"] == 70
    assert len(verdicts(outcome)) >= 21


def test_the_film_shows_every_picture(followed) -> None:
    _, outcome = followed
    frames = 0
    for figure in exhibit.animate(outcome.data, SMALL):
        assert isinstance(figure, Figure)
        frames += 1
    assert frames > outcome.data.sizes["frame"]


def test_claims_over_empty_sets_are_not_decided(followed) -> None:
    bench, outcome = followed
    data = outcome.data.copy()
    data["sure"] = data.sure * np.nan
    data["foretold_sure"] = data.foretold_sure * np.nan
    found = {claim.id: claim for claim in exhibit.claims(data, SMALL, bench)}
    for id in ("C1.sure", "C2.sure", "winners.sure"):
        assert found[id].verdict == "not testable here"
        assert found[id].reason


def test_frames_are_denser_at_the_beginning() -> None:
    steps = exhibit.frame_steps(1000, 20)
    assert steps[-1] == 1000
    assert np.diff(steps)[0] < np.diff(steps)[-1]
    assert replace(SMALL, frames=4).frames == 4
