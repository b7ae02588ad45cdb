"""What configs of several papers check in the same words."""

from dataclasses import replace

import pytest

from tacit.errors import CallError
from tacit.lab.registry import catalogue
from tacit.papers._shared.checks import check_clusters, check_cosine, check_init, check_unique


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


def test_an_init_is_refused_below_what_can_be_followed() -> None:
    check_init("init", (1.0, 1e-150))
    check_init("init", (1e-300,), flow=True)
    for value in (1e-151, 0.0, -1.0, float("nan")):
        with pytest.raises(
            CallError, match=r"^init=.*at least 1e-150 \(squares of smaller weights are 0"
        ):
            check_init("init", (1e-3, value))
    with pytest.raises(
        CallError, match=r"^init=1e-320: it is at least 1e-300 \(float64 has no smaller"
    ):
        check_init("init", (1e-320,), flow=True)


@pytest.mark.parametrize(
    "id",
    ["min2024.fig2", "min2025.learned", "frei2023.thm2.1", "frei2023.beyond", "frei2023.thm3.1",
     "frei2023.thm4.2", "li2025.discovered", "li2025.fig2cd", "li2025.fig3a", "li2025.fig2ab",
     "li2025.fig7", "li2025.phase", "li2025.story"],
)  # fmt: skip
def test_every_exhibit_with_an_init_refuses_one_that_it_cannot_follow(id: str) -> None:
    config = catalogue().find(id).scales["smoke"]
    name = "inits" if hasattr(config, "inits") else "init"
    given = getattr(config, name)
    bad = (*given[:-1], 1e-320) if isinstance(given, tuple) else 1e-320
    with pytest.raises(CallError, match=f"^{name}=1e-320: it is at least 1e-"):
        replace(config, **{name: bad})
