"""What configs of several papers check in the same words."""

import pytest

from tacit.errors import CallError
from tacit.papers._checks import check_unique


def test_values_that_label_an_array_come_once() -> None:
    check_unique("p", (1.0, 3.0))
    check_unique("loss", ("exp", "logistic"))
    with pytest.raises(CallError, match=r"^p=3,3: each value once$"):
        check_unique("p", (3, 3))
