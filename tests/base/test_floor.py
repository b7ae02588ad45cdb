"""The floor below all rooms: linear algebra and checks that several of them use."""

import math

import pytest
import torch

from tacit.base.checks import check_finite
from tacit.base.linalg import power, span_axes, unit_rows
from tacit.errors import CallError


def test_unit_rows_have_length_one_and_a_row_of_zeros_stays() -> None:
    rows, size = unit_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]
    assert size.tolist() == [[5.0], [0.0]]


def test_the_axes_of_a_span_are_orthonormal_and_as_many_as_its_rank() -> None:
    rows = torch.randn(3, 7, dtype=torch.float64)
    axes = span_axes(torch.cat([rows, rows.sum(0, keepdim=True)]))
    assert axes.shape == (7, 3)
    assert torch.allclose(axes.T @ axes, torch.eye(3, dtype=torch.float64))
    assert torch.allclose(rows @ axes @ axes.T, rows)


@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, 3.0, 4.0, 5.0, 31.0, 33.0])
@pytest.mark.parametrize("most", [4, 32])
def test_a_power_by_products_is_the_power(p: float, most: int) -> None:
    r = torch.rand(50, dtype=torch.float64)
    assert torch.allclose(power(r, p, most), r**p, rtol=1e-13)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_by_name_with_a_remedy(bad: float) -> None:
    good, wrong = torch.ones(2), torch.tensor([1.0, bad])
    check_finite("x", good, None)
    with pytest.raises(CallError, match=r"^x holds NaN or inf: drop or impute those points first$"):
        check_finite("x", good, wrong)
    with pytest.raises(CallError, match=r"^w holds NaN or inf: start again$"):
        check_finite("w", wrong, remedy="start again")
