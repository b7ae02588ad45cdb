import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.attack.losses import cross_entropy, margin, targeted


def logits(seed):
    return torch.randn(6, 4, generator=torch.Generator().manual_seed(seed)).double()


Y = torch.tensor([0, 1, 2, 3, 0, 1])


@given(seed=st.integers(0, 999))
def test_the_margin_is_positive_exactly_where_the_label_wins(seed):
    z = logits(seed)
    assert torch.equal(margin(z, Y) > 0, z.argmax(1) == Y)


def test_a_tie_has_margin_zero_and_is_broken():
    assert margin(torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([1])).item() == 0
    assert margin(torch.tensor([0.0]), torch.tensor([-1.0])).item() == 0


@given(seed=st.integers(0, 999))
def test_cross_entropy_is_torchs_with_the_other_sign(seed):
    z = logits(seed)
    theirs = torch.nn.functional.cross_entropy(z, Y, reduction="none")
    assert torch.allclose(cross_entropy(z, Y), -theirs)
    f, y = z[:, 0], torch.tensor([1.0, -1, 1, -1, 1, -1]).double()
    theirs = torch.nn.functional.binary_cross_entropy_with_logits(f, (y + 1) / 2, reduction="none")
    assert torch.allclose(cross_entropy(f, y), -theirs)


@given(seed=st.integers(0, 999))
def test_the_margin_is_the_least_of_the_targeted_ones(seed):
    z = logits(seed)
    each = torch.stack([targeted((Y + k) % 4)(z, Y) for k in (1, 2, 3)])
    assert torch.equal(each.amin(0), margin(z, Y))
    f = z[:, 0]
    y = torch.ones(6).double()
    assert torch.equal(targeted(Y)(f, y), margin(f, y))
