"""Table 1 on scikit-learn's digits, at sizes of seconds, and its claims on made-up data."""

import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from benches import new_bench, verdicts
from tacit.lab.claims import SMOKE_REASON
from tacit.papers.min2024.images.claims import sampling_error
from tacit.papers.min2024.table1 import exhibit as table1
from tacit.papers.min2024.table1.claims import (
    NUMBERS,
    P,
    another_setting,
    claims,
    paper_number,
)
from tacit.papers.min2024.table1.settings import EXHIBITS, Table

LAPTOP, PAPER = (EXHIBITS[0].scales[scale] for scale in ("laptop", "paper"))
SMALL = Table(
    dataset="digits", width=30, epochs=3, batch=300, step=0.02, points=30, steps=4, points_l1=20
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


def test_the_papers_own_numbers_hold_at_every_scale():
    for config in (LAPTOP, PAPER):
        made = claims(invented(config), config, new_bench())
        assert len(made) == 28 + 6 + 1
        assert {claim.verdict for claim in made} == {"holds"}


def test_numbers_are_those_of_the_table():
    assert len(NUMBERS) == 7
    assert sum(map(len, NUMBERS.values())) == 28
    assert paper_number("linf", 0.1, 3.0) == 0.522
    assert paper_number("clean", 0.0, 4.0) == 0.98
    assert math.isnan(paper_number("linf", 0.2, 3.0))
    assert math.isnan(paper_number("linf", 0.1, 1.5))
    # the paper: p = 4 is the best of each robust row, and each row grows with p
    robust = [row for (kind, _), row in NUMBERS.items() if kind != "clean"]
    assert all(list(row) == sorted(row) for row in robust)


def test_tolerances_are_the_bars_and_the_sampling_error_of_the_points():
    def of(config):
        return {c.id: c.expected.tolerance for c in claims(invented(config), config, new_bench())}

    paper, laptop = of(PAPER), of(LAPTOP)
    assert {paper[f"linf-0.05.p{p}"] for p in (1, 2, 3, 4)} == {0.015}
    assert {laptop[f"clean.p{p}"] for p in (1, 2, 3, 4)} == {0.003}
    share = 0.512 * (1 - 0.512)
    error = 1.96 * math.sqrt(share / 500 * (N - 500) / (N - 1))
    assert laptop["linf-0.05.p1"] == pytest.approx(0.015 + error)
    few = 1.96 * math.sqrt(0.25 / PAPER.points_l1 * (N - PAPER.points_l1) / (N - 1))
    assert paper["l1-5.p1"] == pytest.approx(0.015 + few)


def test_a_number_that_is_off_differs():
    off = claims(invented(PAPER, shift=0.02), PAPER, new_bench())
    found = verdicts(off)
    assert {found[f"{row}.p3"] for row in ("linf-0.05", "linf-0.1", "l2-1", "l2-2")} == {"differs"}
    assert {found[f"clean.p{p}"] for p in (1, 2, 3, 4)} == {"holds"}
    data = invented(PAPER)
    worse = data.assign(accuracy=data.accuracy - 0.004 * (data.kind == "clean"))
    assert verdicts(claims(worse, PAPER, new_bench()))["clean.p2"] == "differs"


def test_an_order_that_is_broken_differs():
    data = invented(PAPER)
    wrong = data.outlived_l2.copy(data=data.outlived_l2.values[[0, 2, 1, 3]])
    found = claims(data.assign(outlived_l2=wrong), PAPER, new_bench())
    assert verdicts(found)["grows.l2-1"] == verdicts(found)["grows.l2-2"] == "differs"
    assert "from p = 2 to p = 3" in next(c.statement for c in found if c.id == "grows.l2-1")
    low = data.assign(accuracy=data.accuracy * (1 - 0.5 * ((data.p == 4) & (data.kind == "l1"))))
    (last,) = (c for c in claims(low, PAPER, new_bench()) if c.id == "agnostic")
    assert (last.measured, last.verdict) == (4, "differs")


def alike(data, kind, share):
    """The data with every accuracy of this kind of attack at `share`: 0 or 1."""
    left = data[f"outlived_{kind}"]
    accuracy = data.accuracy.where(data.kind != kind, share)
    return data.assign({"accuracy": accuracy, f"outlived_{kind}": left * 0 + 2 * share})


@pytest.mark.parametrize("share", [0, 1])
def test_rows_in_which_all_nets_are_at_0_or_1_are_not_compared(share):
    found = {c.id: c for c in claims(alike(invented(PAPER), "l2", share), PAPER, new_bench())}
    for id in ("grows.l2-1", "grows.l2-2"):
        assert found[id].verdict == "not testable here"
        assert f"from {share}.000 to {share}.000" in found[id].reason
    assert found["grows.l1-5"].verdict == "holds"
    last = found["agnostic"]
    assert (last.measured, last.expected.value, last.n, last.verdict) == (4, 4, 4, "holds")
    assert "the 4 rows of 6" in last.statement
    data = invented(PAPER)
    for kind in ("linf", "l2", "l1"):
        data = alike(data, kind, share)
    (last,) = (c for c in claims(data, PAPER, new_bench()) if c.id == "agnostic")
    assert (last.verdict, last.measured) == ("not testable here", None)


def test_a_tie_is_no_win_and_is_not_bold():
    data = invented(PAPER)
    top = data.accuracy.sel(p=4.0)
    tied = data.assign(accuracy=data.accuracy.where((data.p != 3) | (data.kind != "l1"), top))
    (last,) = (c for c in claims(tied, PAPER, new_bench()) if c.id == "agnostic")
    assert (last.measured, last.expected.value, last.verdict) == (4, 6, "differs")

    def bold(data):
        texts = table1.draw(data, PAPER).axes[0].texts
        return sum(text.get_weight() == "bold" for text in texts)

    # two nets share the best clean accuracy of the paper's table
    assert (bold(data), bold(tied)) == (6, 4)


def printed(config):
    figure = table1.draw(invented(LAPTOP), config)
    numbers = [text.get_text() for text in figure.axes[0].texts]
    legend = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    return len(numbers), "paper" in legend, figure.get_suptitle()


def test_the_papers_numbers_are_drawn_for_its_data_alone():
    assert printed(LAPTOP) == (56, True, "mnist, 10 classes, layer as released")
    for changes in ({"dataset": "digits"}, {"classes": 2}, {"layer": "written"}):
        config = replace(LAPTOP, **changes)
        title = f"{config.dataset}, {config.classes} classes, layer as {config.layer}"
        assert printed(config) == (28, False, title)


@pytest.mark.parametrize(
    "changes",
    [{"dataset": "digits"}, {"classes": 2}, {"layer": "written"}, {"epochs": 20}, {"width": 100}],
)
def test_in_another_setting_only_the_order_is_judged(changes):
    config = replace(LAPTOP, **changes)
    made = claims(invented(config), config, new_bench())
    numbers, order = made[:28], made[28:]
    assert {c.verdict for c in numbers} == {"not testable here"}
    [(name, value)] = changes.items()
    assert all(f"{name}={value}" in c.reason for c in numbers)
    assert {c.verdict for c in order} == {"holds"}
    assert another_setting(LAPTOP) == another_setting(PAPER) == ""


def test_other_radii_have_no_number_of_the_paper():
    config = replace(SMALL, linf=(0.05, 0.3), p=(1.0, 1.5))
    ids = {c.id for c in table1.run(replace(config, epochs=1, steps=1), new_bench()).claims}
    assert {"linf-0.05.p1", "grows.linf-0.3"} <= ids
    assert not {"linf-0.3.p1", "linf-0.05.p1.5"} & ids


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
    made = claims(outcome.data, SMALL, new_bench(scale="smoke"))
    assert {c.verdict for c in made} == {"not testable here"}
    assert {c.reason for c in made[28:]} == {SMOKE_REASON}
    said: list[str] = []
    table1.run(
        replace(SMALL, epochs=1, steps=1, points=3, points_l1=3, p=(1.0,)), new_bench(said=said)
    )
    assert "digits" in said[0]


def test_figures_are_drawn_with_and_without_the_papers_numbers(outcome):
    assert len(table1.draw(invented(LAPTOP), LAPTOP).axes) == 4
    none = outcome.data.assign(paper=outcome.data.paper * math.nan)
    assert len(table1.draw(none, SMALL).axes) == 4
