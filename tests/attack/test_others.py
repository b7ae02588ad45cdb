"""Attacks of other tools: what counts as broken, and random numbers that stay aside."""

import numpy as np
import torch

from tacit.attack.others import Logits, aside, installed, judged
from tacit.nets import Linear


def test_what_leaves_the_ball_or_the_box_is_not_broken():
    rule = Linear(torch.tensor([1.0, 0.0]), 0.0)
    x, y = torch.tensor([[0.5, 0.5]] * 3), torch.ones(3)
    moved = torch.tensor([[0.0, 0.5], [-0.2, 0.5], [-0.6, 0.5]])
    broken, outside = judged(rule, x, y, moved, 1.0, None)
    assert broken.tolist() == [True, True, False]
    assert outside.tolist() == [False, False, True]
    broken, outside = judged(rule, x, y, moved, 1.0, (0.0, 1.0))
    assert broken.tolist() == [True, False, False]


def test_random_numbers_inside_depend_on_the_seed_and_those_outside_do_not_move():
    def drawn():
        return float(torch.rand(())), float(np.random.rand())

    torch.manual_seed(1)
    np.random.seed(1)
    plain = drawn()
    torch.manual_seed(1)
    np.random.seed(1)
    with aside(7):
        inside = drawn()
    assert drawn() == plain
    with aside(7):
        assert drawn() == inside
    with aside(8):
        assert drawn() != inside


def test_one_output_becomes_two_logits_and_a_package_that_is_not_there_has_no_version():
    f = Linear(torch.tensor([2.0, 0.0]), 0.0)
    x = torch.tensor([[1.0, 3.0], [-2.0, 1.0]])
    assert torch.equal(Logits(f)(x), torch.tensor([[-1.0, 1.0], [2.0, -2.0]]))
    assert installed("torch")
    assert installed("no-such-package-at-all") is None
