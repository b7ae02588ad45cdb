"""One test for all: whatever is registered keeps the contract at smoke scale."""

from __future__ import annotations

import json
from pathlib import Path

import jaxtyping
import pytest

from contract import check_document, check_folder
from tacit.base.progress import Silent
from tacit.cli import status
from tacit.lab.claims import SMOKE_REASON
from tacit.lab.registry import catalogue
from tacit.lab.runner import run_exhibit
from tacit.lab.store import read_dataset


def test_no_paper_is_broken() -> None:
    assert [str(broken) for broken in catalogue().broken] == []


# five seconds to half a minute each with shapes enforced; their own tests run smaller ones
LONG = {
    "allenzhu2020.fig1",
    "allenzhu2020.fig10",
    "allenzhu2020.fig11",
    "allenzhu2020.fig12",
    "allenzhu2020.fig12_alexnet",
    "allenzhu2020.fig2",
    "allenzhu2020.fig4",
    "allenzhu2020.fig6",
    "allenzhu2020.fig8",
    "allenzhu2020.fig9",
    "allenzhu2020.from_pure",
    "allenzhu2020.lottery",
    "allenzhu2020.scaling",
    "allenzhu2020.table1",
    "allenzhu2020.thm5.1",
    "allenzhu2020.thm5.3",
    "allenzhu2020.transfer",
    "frei2023.beyond",
    "frei2023.every_kkt",
    "frei2023.nn1",
    "frei2023.remarks",
    "frei2023.thm2.1",
    "frei2023.thm3.1",
    "frei2023.thm4.2",
    "li2025.appendixC",
    "li2025.deep_story",
    "li2025.discovered",
    "li2025.eps",
    "li2025.fig10",
    "li2025.fig2cd",
    "li2025.fig3c",
    "li2025.lemma5",
    "li2025.phase",
    "li2025.story",
    "li2025.thm4.5",
    "li2025.thm4.6",
    "li2025.thm4.7",
    "min2024.alg1",
    "min2024.fig2_sgd",
    "min2024.fig3",
    "min2024.fig4",
    "min2024.fig4_mod10",
    "min2024.fig5",
    "min2024.fig5_sgd",
    "min2024.fig6",
    "min2024.lemma1",
    "min2024.overstated",
    "min2024.overtraining",
    "min2024.table1",
    "min2024.table1_strict",
    "min2024.tails",
    "min2024.thm1",
    "min2024.thm2",
    "min2024.thm3",
    "min2025.learned",
    "min2025.persists",
    "min2025.robust",
    "min2025.limits",
    "min2025.transition",
}
EVERY = [
    pytest.param(id, marks=pytest.mark.slow) if id in LONG else id for id in catalogue().exhibits
]


@pytest.mark.parametrize("id", EVERY)
def test_exhibit(
    id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _run(id, tmp_path / "first", capsys)
    folder = tmp_path / "first" / id
    check_folder(folder, smoke=True)
    # what is exact at any size is judged; what is about the world is not
    for claim in first["claims"]:
        judged = claim["verdict"] != "not testable here"
        assert judged or claim["reason"] == SMOKE_REASON or claim["measured"] is None, claim["id"]

    before = (folder / "provenance.json").read_bytes()
    again = _run(id, tmp_path / "first", capsys)
    assert again == first
    assert (folder / "provenance.json").read_bytes() == before, "a complete run was run again"

    monkeypatch.setenv("TACIT_MODELS", str(tmp_path / "empty"))  # nets are trained again
    # the first run had its annotations checked; the second makes the same calls
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    second = _repeated(id, tmp_path / "second")
    assert second == first["claims"]
    data, twin = (read_dataset(tmp_path / out / id / "result.nc") for out in ("first", "second"))
    assert set(data.variables) == set(twin.variables)
    for name, variable in data.variables.items():
        assert variable.dims == twin[name].dims
        assert variable.values.tobytes() == twin[name].values.tobytes(), f"{name} is not repeatable"


def _repeated(id: str, out: Path) -> list:
    """The claims of a second run, without figure and report, which are made from the same stored data."""
    exhibit = catalogue().find(id)
    run_exhibit(
        exhibit, exhibit.scales["smoke"], scale="smoke", seed=0, device="auto", out=out, fresh=False,
        progress=Silent(), publish=_empty_pages,
    )  # fmt: skip
    return json.loads((out / id / "claims.json").read_text())


def _empty_pages(folder: Path, _sheet: object) -> None:
    """Drawing takes longer than most smoke runs."""
    for name in ("figure.svg", "figure.png", "report.html"):
        (folder / name).touch()


def _run(id: str, out: Path, capsys: pytest.CaptureFixture[str]) -> dict:
    assert status(["run", id, "--scale", "smoke", "--out", str(out), "--json"]) == 0
    printed = capsys.readouterr()
    (run,) = check_document(printed.out, smoke=True)
    assert (run["id"], run["scale"], run["seed"]) == (id, "smoke", 0)
    return run
