"""What configs of several papers check in the same words."""

import pytest

from tacit.errors import CallError
from tacit.papers._shared.checks import check_clusters, check_cosine, check_unique


def test_values_that_label_an_array_come_once() -> None:
    check_unique("p", (1.0, 3.0))
    check_unique("loss", ("exp", "logistic"))
    with pytest.raises(CallError, match=r"^p=3,3: each value once$"):
        check_unique("p", (3, 3))


def test_counts_of_clusters_are_refused_by_the_names_of_the_config() -> None:
    check_clusters(4, 1, 4)
    with pytest.raises(CallError, match=r"^K=1: it is at least 2 \(both classes need a cluster\)$"):
        check_clusters(1, 0, 5)
    with pytest.raises(CallError, match=r"^k1=4 with k=4: the positive clusters number 1 to 3$"):
        check_clusters(4, 4, 9, names=("k", "k1", "d"))
    with pytest.raises(CallError, match=r"^few=4 > at=3: orthogonal centres need at >= few"):
        check_clusters(4, 2, 3, names=("few", "positive", "at"))


def test_a_cosine_that_no_distinct_centres_have_is_refused() -> None:
    check_cosine(-1 / 3, 4)
    check_cosine(0.999, 4)
    for cosine in (-0.34, 1.0, 1.5, float("nan")):
        with pytest.raises(CallError, match=r"^cosine="):
            check_cosine(cosine, 4)
