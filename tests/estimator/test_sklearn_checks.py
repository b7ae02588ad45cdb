"""All of scikit-learn's own checks of an estimator; none is expected to fail.

One skips itself: that of inputs by scipy's array API, which must be switched on (SCIPY_ARRAY_API=1) before scipy
is imported, for the whole process; with it the check runs and passes. Two parameters are left as they are: with
warm_start=True a second fit goes on (check_supervised_y_2d wants it equal to the first), and with
early_stopping=True rows that are kept aside at random make a weight of 2 differ from a row given twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jaxtyping
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit import PolyReLUClassifier

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# few neurons and large steps: the data of the checks are small and clustered
SMALL: dict[str, Any] = {"width": 10, "max_iter": 12, "learning_rate": 0.1}


@pytest.fixture(autouse=True)
def without_type_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks hand over values of wrong types on purpose: the package's own words must refuse them."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@parametrize_with_checks([PolyReLUClassifier(**SMALL)])
def test_checks_pass(estimator: PolyReLUClassifier, check: Callable[..., None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        PolyReLUClassifier(),
        PolyReLUClassifier(p=1, **SMALL),
        PolyReLUClassifier(p=4.5, loss="exp", **SMALL),
        PolyReLUClassifier(supervision="discovered", **SMALL),
        PolyReLUClassifier(normalize_input=False, **SMALL),
    ]
)
def test_checks_pass_in_other_configurations(
    estimator: PolyReLUClassifier, check: Callable[..., None]
) -> None:
    check(estimator)
