"""Merging on its own: sums, laws and who is left alone."""

import math

import torch

from tacit.train.flow.merge import grouped, merged
from tacit.train.flow.neurons import BALANCED, FIXED, WIDE, Neurons, neurons_of


def parallel(v: list[float], *, fixed: bool = False) -> Neurons:
    """Neurons of one direction with ||w|| = 1, 2, 3, ... and the given second layer."""
    k = len(v)
    w = torch.zeros(1, k, 3, dtype=torch.float64)
    w[0, :, 0] = torch.arange(1, k + 1)
    return neurons_of(w, torch.tensor([v], dtype=torch.float64), fixed_v=fixed)


def group(neurons: Neurons) -> Neurons:
    active = torch.ones_like(neurons.sign, dtype=torch.bool)
    found = grouped(neurons, active, torch.tensor([False]), 0.03)
    return neurons if found is None else merged(neurons, found)


def test_masses_of_one_sign_add_up_and_signs_stay_apart() -> None:
    one = group(parallel([1.0, 2.0, -3.0, 4.0]))  # balanced
    assert torch.allclose(one.A[0].sort().values, torch.tensor([-9.0, 21.0], dtype=torch.float64))
    assert (one.kind == BALANCED).all()


def test_fixed_neurons_add_their_masses_and_their_squares() -> None:
    # A = a r has A' = a^2 G: the merged neuron must grow as all of them together
    v = [0.5, 1.0, 2.0]
    one = group(parallel(v, fixed=True))
    assert one.q.shape == (1, 1)
    assert (one.kind == FIXED).all()
    assert math.isclose(float(one.A), 0.5 * 1 + 1.0 * 2 + 2.0 * 3, rel_tol=1e-12)
    assert math.isclose(float((2 * one.log_k).exp()), 0.25 + 1 + 4, rel_tol=1e-12)


def test_neurons_far_from_balance_wait() -> None:
    young = parallel([0.5, 1.0, 1.5])  # e = atanh(1/2)
    assert (young.kind == WIDE).all()
    assert group(young).q.shape == (1, 3)
    old = Neurons(young.u, young.q + 5, young.log_k, young.sign, young.kind)
    assert group(old).q.shape == (1, 1)
    assert math.isclose(float(group(old).A), float(old.A.sum()), rel_tol=1e-12)
