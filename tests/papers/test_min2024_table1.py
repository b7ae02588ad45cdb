"""Table 1 on scikit-learn's digits, at sizes of seconds, and its claims on made-up data."""

import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from benches import new_bench
from tacit.lab.claims import SMOKE_REASON
from tacit.papers.min2024.images.claims import sampling_error
from tacit.papers.min2024.table1 import exhibit as table1
from tacit.papers.min2024.table1.claims import NUMBERS, SPREADS, P, claims, printed
from tacit.papers.min2024.table1.settings import EXHIBITS, Table

LAPTOP, PAPER = (EXHIBITS[0].scales[scale] for scale in ("laptop", "paper"))
SMALL = Table(
    dataset="digits",
    width=30,
    epochs=3,
    batch=300,
    step=0.02,
    points=30,
    steps=4,
    points_l1=20,
    restarts_l1=1,
)
N = 10_000


@pytest.fixture(scope="module")
def outcome():
    return table1.run(SMALL, new_bench())


def invented(config, shift=0.0, seeds=2):
    """Data in which every robust accuracy is the paper's, plus `shift`, to the nearest point."""
    coords = {"p": list(P), "seed": list(range(seeds))}

    def left(kind, points):
        radii = getattr(config, kind)
        kept = np.zeros((len(P), seeds, points), dtype=np.int16)
        for r in radii:
            for i, share in enumerate(NUMBERS[kind, r]):
                # the points that outlive the larger radius are among those that outlive the smaller
                kept[i, :, : round((share + shift) * points)] += 1
        return xr.DataArray(kept, dims=("p", "seed", "point"), coords=coords)

    clean = np.repeat(np.array(NUMBERS["clean", 0.0])[:, None], seeds, 1)
    whole = {
        kind: left(kind, config.points_l1 if kind == "l1" else config.points)
        for kind in ("linf", "l2", "l1")
    }
    return table1.table_of(xr.DataArray(clean, dims=("p", "seed"), coords=coords), whole, config, N)


def judged(data, config=PAPER, **how):
    return {claim.id: claim for claim in claims(data, config, new_bench(**how))}


def test_the_papers_own_numbers_hold_where_all_points_and_seeds_say_so():
    found = judged(invented(PAPER))
    assert {id: claim.verdict for id, claim in found.items()} == {
        "numbers": "holds", "grows": "holds", "agnostic": "holds"
    }  # fmt: skip
    numbers = found["numbers"]
    assert (len(numbers.members), numbers.measured, numbers.expected.min) == (28, 28, 28)
    assert {claim.regime.partition(":")[0] for claim in found.values()} == {"inside"}
    assert (found["agnostic"].source, found["grows"].source) == ("words", "order")


def test_on_one_draw_of_few_points_the_numbers_are_one_undecided_family():
    found = judged(invented(LAPTOP, seeds=1), LAPTOP)
    numbers = found["numbers"]
    assert (numbers.measured, numbers.verdict) == (28, "undecided")
    assert numbers.interval[0] < 28 == numbers.interval[1]
    assert found["agnostic"].verdict == "holds"  # the table's own spread is far smaller than that
    assert "one training" in numbers.regime
    # simultaneous: the interval of one of 28 is wider than one alone
    (cell,) = (m for m in numbers.members if m.id == "linf-0.05.p1")
    alone = 1.96 * math.sqrt(0.512 * 0.488 / 500 * (N - 500) / (N - 1))
    assert cell.interval[1] - cell.interval[0] > 2 * 1.4 * alone


def test_without_a_spread_one_training_decides_nothing():
    config = replace(LAPTOP, linf=(0.07, 0.15))
    data = invented(LAPTOP, seeds=1)
    other = [0.0, 0.07, 0.15, 1.0, 2.0, 5.0, 10.0]
    found = judged(data.assign_coords(radius=("row", other)), config)
    assert found["grows"].interval[0] < found["grows"].measured
    (cell,) = (m for m in found["grows"].members if m.id == "linf-0.15")
    assert cell.interval == (-1, 1)


def test_numbers_are_those_of_the_table():
    assert len(NUMBERS) == 7
    assert sum(map(len, NUMBERS.values())) == 28
    assert NUMBERS.keys() == SPREADS.keys()
    assert printed(NUMBERS, ("linf", 0.1), 3.0) == 0.522
    assert printed(NUMBERS, ("clean", 0.0), 4.0) == 0.98
    assert printed(SPREADS, ("l1", 5.0), 2.0) == 0.007
    assert math.isnan(printed(NUMBERS, ("linf", 0.2), 3.0))
    assert math.isnan(printed(NUMBERS, ("linf", 0.1), 1.5))
    # the paper: p = 4 is the best of each robust row, and each row grows with p
    robust = [row for (kind, _), row in NUMBERS.items() if kind != "clean"]
    assert all(list(row) == sorted(row) for row in robust)


def test_a_number_that_is_off_differs():
    numbers = judged(invented(PAPER, shift=0.02))["numbers"]
    assert (numbers.verdict, numbers.measured) == ("differs", 4)
    assert "linf-0.05.p3" in numbers.reason
    assert "clean" not in numbers.reason
    data = invented(PAPER)
    worse = data.assign(accuracy=data.accuracy - 0.004 * (data.kind == "clean"))
    assert "clean.p2" in judged(worse)["numbers"].reason


def test_an_order_that_is_broken_differs():
    data = invented(PAPER)
    wrong = data.outlived_l2.copy(data=data.outlived_l2.values[[0, 2, 1, 3]])
    found = judged(data.assign(outlived_l2=wrong))
    assert found["grows"].verdict == "differs"
    assert all(row in found["grows"].reason for row in ("l2-1", "l2-2"))
    assert found["agnostic"].verdict == "holds"
    wrong = data.outlived_l1.copy(data=data.outlived_l1.values[[3, 1, 2, 0]])
    assert judged(data.assign(outlived_l1=wrong))["agnostic"].verdict == "differs"


def alike(data, kind, share):
    """The data with every accuracy of this kind of attack at `share`: 0 or 1."""
    left = data[f"outlived_{kind}"]
    accuracy = data.accuracy.where(data.kind != kind, share)
    return data.assign({"accuracy": accuracy, f"outlived_{kind}": left * 0 + 2 * share})


@pytest.mark.parametrize("share", [0, 1])
def test_rows_in_which_all_nets_are_at_0_or_1_are_not_compared(share):
    found = judged(alike(invented(PAPER), "l2", share))
    assert [m.id for m in found["grows"].members] == ["linf-0.05", "linf-0.1", "l1-5", "l1-10"]
    assert "(4 rows)" in found["grows"].statement
    data = invented(PAPER)
    for kind in ("linf", "l2", "l1"):
        data = alike(data, kind, share)
    assert set(judged(data)) == {"numbers"}


def test_a_tie_is_not_bold():
    data = invented(PAPER)
    top = data.accuracy.sel(p=4.0)
    tied = data.assign(accuracy=data.accuracy.where((data.p != 3) | (data.kind != "l1"), top))

    def bold(data):
        texts = table1.draw(data, PAPER).axes[0].texts
        return sum(text.get_weight() == "bold" for text in texts)

    # two nets share the best clean accuracy of the paper's table
    assert (bold(data), bold(tied)) == (6, 4)


def shown(config):
    figure = table1.draw(invented(LAPTOP), config)
    numbers = [text.get_text() for text in figure.axes[0].texts]
    legend = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    return len(numbers), "paper" in legend, figure.get_suptitle()


def test_the_papers_numbers_are_drawn_for_its_setting_alone():
    assert shown(LAPTOP) == (56, True, "mnist, 10 classes, 51 epochs, layer as released")
    for changes in ({"dataset": "digits"}, {"classes": 2}, {"layer": "written"}, {"epochs": 9}):
        assert shown(replace(LAPTOP, **changes))[:2] == (28, False)


@pytest.mark.parametrize(
    ("changes", "regime"),
    [
        ({"dataset": "digits"}, "other data: digits"),
        ({"classes": 2}, "outside: classes = 2"),
        ({"layer": "written"}, "outside: layer = written"),
        ({"epochs": 20}, "shortened: epochs = 20"),
        ({"restarts_l1": 1}, "shortened: restarts_l1 = 1"),
    ],
)
def test_in_another_setting_only_the_order_is_judged(changes, regime):
    config = replace(PAPER, **changes)
    found = judged(invented(config), config)
    assert found["numbers"].verdict == "not testable here"
    assert regime in found["numbers"].reason
    assert all(claim.regime.startswith(regime) for claim in found.values())
    assert {found[id].verdict for id in ("grows", "agnostic")} == {"holds"}


def test_other_radii_have_no_number_of_the_paper():
    config = replace(SMALL, linf=(0.05, 0.3), p=(1.0, 1.5), epochs=1, steps=1)
    found = {c.id: c for c in table1.run(config, new_bench()).claims}
    # clean, linf .05, l2 and l1 at p = 1
    assert found["numbers"].expected.min == 6


def test_a_run_has_all_rows_and_the_nets(outcome):
    data = outcome.data
    assert data.kind.values.tolist() == ["clean", "linf", "linf", "l2", "l2", "l1", "l1"]
    assert data.radius.values.tolist() == [0, 0.05, 0.1, 1, 2, 5, 10]
    assert data.points.values.tolist() == [599, 30, 30, 30, 30, 20, 20]
    assert list(outcome.nets) == [f"p{p}-seed0" for p in (1, 2, 3, 4)]
    assert ((data.accuracy >= 0) & (data.accuracy <= 1)).all()
    for row, kind in ((1, "linf"), (4, "l2"), (5, "l1")):
        share = (
            (data[f"outlived_{kind}"] > (row + 1) % 2).mean(f"point_{kind}").transpose("p", "seed")
        )
        np.testing.assert_allclose(data.accuracy[row], share)
    mean = float(data.accuracy[1, 0, 0])
    assert float(data.half[1, 0]) == pytest.approx(sampling_error(mean, 30, 599))
    assert float(data.half[0, 0]) == 0  # one seed, all points


def test_smoke_decides_nothing_and_digits_are_announced(outcome):
    made = judged(outcome.data, SMALL, scale="smoke")
    assert {c.verdict for c in made.values()} == {"not testable here"}
    assert made["grows"].reason == SMOKE_REASON
    said: list[str] = []
    table1.run(
        replace(SMALL, epochs=1, steps=1, points=3, points_l1=3, p=(1.0,)), new_bench(said=said)
    )
    assert "digits" in said[0]


def test_figures_are_drawn_with_and_without_the_papers_numbers(outcome):
    assert len(table1.draw(invented(LAPTOP), LAPTOP).axes) == 4
    none = outcome.data.assign(paper=outcome.data.paper * math.nan)
    assert len(table1.draw(none, SMALL).axes) == 4
