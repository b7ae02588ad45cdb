"""frei2023.remarks: cases against their definitions, eta against the exact limit, claims in made-up worlds."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from benches import new_bench, verdicts
from tacit.attack import frei2023_z
from tacit.errors import CallError
from tacit.papers.frei2023._shared.trained import flip_etas
from tacit.papers.frei2023.remarks.cases import LOUD, Case, cases, drawn, mixture_of
from tacit.papers.frei2023.remarks.claims import claims, too_long
from tacit.papers.frei2023.remarks.settings import Remarks
from tacit.train import two_neuron_max_margin

LAPTOP = Remarks()


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_noise_on_the_sphere_has_its_length_and_no_direction():
    case = Case("noise", "sphere", 50, 4, 0.5, "sphere")
    mixture = mixture_of(case)
    samples = drawn(case, mixture, 4000, seeded())
    xi = samples.x - mixture.centres[samples.z]
    torch.testing.assert_close(xi.norm(dim=1), torch.full((4000,), 0.5 * math.sqrt(50)).double())
    assert float(xi.mean(0).abs().max()) < 5 * 0.5 / math.sqrt(4000)


def test_anisotropic_noise_has_trace_d_and_is_loud_along_the_means():
    case = Case("noise", "anisotropic", 30, 4, 1.0, "anisotropic")
    mixture = mixture_of(case)
    samples = drawn(case, mixture, 20_000, seeded())
    variance = (samples.x - mixture.centres[samples.z]).var(0)
    along = (mixture.centres != 0).any(0)
    assert float(variance.sum()) == pytest.approx(30, rel=0.02)
    np.testing.assert_allclose(variance[along].numpy(), LOUD, rtol=0.05)


@pytest.mark.parametrize("noise", ["uniform", "laplace", "student"])
def test_other_coordinates_have_the_same_variance(noise):
    case = Case("noise", noise, 20, 2, 0.7, noise)
    mixture = mixture_of(case)
    samples = drawn(case, mixture, 20_000, seeded())
    xi = samples.x - mixture.centres[samples.z]
    assert float(xi.square().mean().sqrt()) == pytest.approx(0.7, rel=0.02)


def test_norms_run_from_one_end_to_the_other_in_both_classes():
    mixture = mixture_of(Case("norms", "0.3", 64, 6, 1e-3, spread=0.3))
    norms = (mixture.centres.norm(dim=1) / 8).tolist()
    assert sorted(norms) == pytest.approx([0.7, 0.82, 0.94, 1.06, 1.18, 1.3])
    for side in (1, -1):
        mine = [n for n, y in zip(norms, mixture.labels.tolist(), strict=True) if y == side]
        assert min(mine) < 0.9 < 1.05 < max(mine)


@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_eta_is_one_over_k_at_the_exact_limit_whatever_the_norms(spread):
    pytest.importorskip("clarabel")
    case = Case("norms", "s", 400, 4, 1e-4, spread=spread)
    mixture = mixture_of(case)
    train = drawn(case, mixture, 30, seeded())
    net = two_neuron_max_margin(train.x, train.y).net
    etas = flip_etas(net, train.x, train.y, net.w @ frei2023_z(mixture))
    np.testing.assert_allclose(4 * etas.numpy(), 1, rtol=0.02)


def test_all_remarks_have_their_cases():
    kinds = [case.kind for case in cases(LAPTOP)]
    assert kinds == ["noise"] * 5 + ["norms"] * 2 + ["sigma"] * 6
    assert cases(LAPTOP)[-1].sigma == pytest.approx(800**0.25)


# ---- what is judged, in worlds that are made up


def world(*, holds: bool, config: Remarks = LAPTOP) -> xr.Dataset:
    """Every number on the right side of its bar, or on the wrong one."""
    every = cases(config)
    shape = (len(every), config.repeats)
    stream = np.random.default_rng(0)
    bad = 0.0 if holds else 0.3 * config.tests
    worst = np.full((*shape, 6), 0.5)
    for i, case in enumerate(every):
        admitted = case.kind == "noise" and case.noise != "student"
        if admitted != holds:  # P1 to P6 hold for admitted noise alone
            worst[i, :, 4] = 1.5
    one = ("case", "seed")
    return xr.Dataset(
        {
            "wrong": (one, np.full(shape, bad)),
            "kept": (one, np.full(shape, bad)),
            "eta_k": (one, (1.0 if holds else 1.4) + 0.001 * stream.standard_normal(shape)),
            "worst": ((*one, "property"), worst),
            "inside": ("case", np.zeros(len(every), dtype=bool)),
            "separated": ("case", np.ones(len(every), dtype=bool)),
        },
        coords={
            "kind": ("case", [case.kind for case in every]),
            "name": ("case", [case.name for case in every]),
            "d": ("case", [case.d for case in every]),
            "property": ["P1", "P2", "P3", "P4", "P5", "P6"],
        },
    )


def judged(data, config=LAPTOP):
    return verdicts(claims(data, config, new_bench(scale="laptop")))


def test_every_claim_holds_in_a_true_world_and_differs_in_a_false_one():
    config = replace(LAPTOP, repeats=40)
    true, false = (judged(world(holds=so, config=config), config) for so in (True, False))
    assert true.pop("lemma.D.5") == false.pop("lemma.D.5") == "vacuous"
    # a share of 1 of 40 does not exclude the 0.999 that Gaussian noise is promised
    assert true.pop("heavy.P") == "as predicted"
    assert false.pop("heavy.P") == "undecided"
    assert set(true.values()) == {"holds", "as predicted"}
    assert set(false.values()) == {"differs", "not as predicted"}
    assert len(true) == 4 + 2 + 4 + 3 + 3


def test_enough_data_sets_tell_that_heavy_noise_keeps_the_properties():
    config = replace(LAPTOP, noises=("student",), D=100, repeats=60)
    found = judged(world(holds=False, config=config), config)
    assert found["heavy.P"] == "not as predicted"


def test_the_lemma_speaks_where_the_assumption_admits_the_clusters():
    config = replace(LAPTOP, D=10**8)
    assert judged(world(holds=True, config=config), config)["lemma.D.5"] == "holds"


def test_nets_that_do_not_fit_are_told_and_not_judged():
    data = world(holds=True)
    data["wrong"][:] = np.nan
    data["kept"][:] = np.nan
    data["eta_k"][:] = np.nan
    found = judged(data)
    assert found["noise.error"] == found["norms.flips"] == "not testable here"
    assert "noise.eta" not in found


def test_a_point_is_too_long_where_the_square_of_sigma_passes_two_and_delta():
    assert not too_long(200, 0.125)
    assert too_long(800, 0.125)
    assert not too_long(10**6, 0.01)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"noises": ("cauchy",)}, "noises=cauchy: choose from uniform"),
        ({"spreads": (1.5,)}, "spreads=1.5: it is at most 0.9"),
        ({"powers": ()}, "powers: give at least one value"),
        ({"repeats": 1}, "repeats=1: it is at least 2"),
        ({"log_loss": -2.0}, "log_loss=-2.0: it is at most -15"),
        ({"dims": (3,)}, "K=4 > D=3"),
    ],
)
def test_settings_that_cannot_be_are_refused(change, told):
    with pytest.raises(CallError, match=told):
        replace(LAPTOP, **change)
