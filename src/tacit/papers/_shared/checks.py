"""What configs of several papers check in the same words (torch is not needed for that)."""

from collections.abc import Iterable

from tacit.errors import CallError
from tacit.lab.settings import as_text


def check_clusters(K: int, K1: int, D: int, names: tuple[str, str, str] = ("K", "K1", "D")) -> None:
    """1 <= K1 < K <= D, in the words of a config that calls them by `names`."""
    k, k1, d = names
    check_at_least(k, (K,), 2, "both classes need a cluster")
    if not 1 <= K1 < K:
        raise CallError(f"{k1}={K1} with {k}={K}: the positive clusters number 1 to {K - 1}")
    if K > D:
        raise CallError(
            f"{k}={K} > {d}={D}: orthogonal centres need {d} >= {k}; raise {d} or lower {k}"
        )


def check_cosine(cosine: float, k: int) -> None:
    """k centres can have this pairwise cosine, and two of them differ: -1/(k-1) <= cosine < 1."""
    check_at_least("cosine", (cosine,), -1 / (k - 1), f"of {k} centres with one cosine")
    if not cosine < 1:
        raise CallError(f"cosine={cosine}: it is less than 1 (at 1 all centres are one point)")


def check_pairs(K: tuple[int, ...], K1: tuple[int, ...], D: int) -> None:
    """K and K1 come in pairs, each a valid count of clusters."""
    if len(K) != len(K1):
        raise CallError(
            f"K has {len(K)} values and K1 {len(K1)}: they pair up, as in --set K=4,10 --set K1=2,6"
        )
    for k, k1 in zip(K, K1, strict=True):
        check_clusters(k, k1, D)


def check_at_least(name: str, values: Iterable[float], least: float, why: str = "") -> None:
    """Every value is at least `least`."""
    for value in values:
        if not value >= least:
            raise CallError(f"{name}={value}: it is at least {least:g}{why and f' ({why})'}")


def check_at_most(name: str, values: Iterable[float], most: float, why: str = "") -> None:
    """Every value is at most `most`."""
    for value in values:
        if not value <= most:
            raise CallError(f"{name}={value}: it is at most {most:.6g}{why and f' ({why})'}")


def check_positive(name: str, values: Iterable[float]) -> None:
    """Every value is positive."""
    for value in values:
        if not value > 0:
            raise CallError(f"{name}={value}: it is a positive number")


def check_unique(name: str, values: tuple[float | str, ...]) -> None:
    """No value twice: values become labels of the arrays, and a label names one place."""
    if len(set(values)) < len(values):
        raise CallError(f"{name}={as_text(values)}: each value once")


LEAST_FOLLOWED, LEAST_STEPPED = 1e-300, 1e-150


def check_init(name: str, values: Iterable[float], *, flow: bool = False) -> None:
    """Sizes of initial weights that can be followed: positive, with all their digits; squares too, but by a flow.

    A flow keeps masses by their logarithm. Steps, and margins over squares of weights, need the squares.
    """
    least, why = LEAST_FOLLOWED, "float64 has no smaller weight with all its digits"
    if not flow:
        least, why = LEAST_STEPPED, "squares of smaller weights are 0 in float64"
    check_at_least(name, values, least, why)
