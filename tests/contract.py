"""The contracts of the design, as checks that any run folder and any JSON document must pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import xarray as xr
from safetensors import safe_open

from tacit.lab.claims import BARS, REGIMES, SMOKE_REASON, SOURCES, VERDICTS, Claim

FILES = ("config.json", "provenance.json", "result.nc", "claims.json", "report.html")
FIGURES = ("figure.svg", "figure.png")
CLAIM_KEYS = [
    "id",
    "statement",
    "where",
    "expected",
    "measured",
    "spread",
    "n",
    "verdict",
    "reason",
    "source",
    "bar",
    "regime",
    "interval",
    "over",
    "same_as",
    "deterministic",
    "members",
]
RUN_KEYS = ["id", "scale", "seed", "folder", "seconds", "claims"]
PROVENANCE_KEYS = {
    *("id", "version", "commit", "scale", "seed", "device", "threads", "python", "torch"),
    *("started", "seconds", "command", "files"),
}


def check_claim(claim: dict[str, Any], *, smoke: bool) -> None:
    """A record of claims.json."""
    assert list(claim) == CLAIM_KEYS
    assert claim["statement"]
    assert claim["where"]
    assert set(claim["expected"]) <= {"value", "min", "max", "text", "tolerance"}
    assert set(claim["expected"]) & {"value", "min", "max", "text"}
    assert claim["measured"] is None or isinstance(claim["measured"], (int, float))
    assert claim["spread"] is None or claim["spread"] >= 0
    assert isinstance(claim["n"], int)
    assert claim["verdict"] in VERDICTS
    assert bool(claim["reason"]) == (claim["verdict"] not in ("holds", "as predicted"))
    assert claim["source"] in SOURCES
    for key, kinds in (("bar", BARS), ("regime", REGIMES)):
        kind, _, line = claim[key].partition(": ")
        assert kind in kinds, claim["id"]
        assert line, claim["id"]
    check_evidence(claim)
    if claim["reason"] == SMOKE_REASON:
        assert smoke


def check_evidence(record: dict[str, Any]) -> None:
    """A decided verdict has all of its interval on one side of the bar; what has none says why."""
    claim = Claim.from_json(record)
    if claim.verdict == "not testable here":
        return
    assert (claim.interval is None) == bool(claim.deterministic), claim.id
    ends = claim.interval or (claim.measured,) * 2
    if None in ends:  # infinite, and null in JSON
        return
    side = {
        "holds": "inside",
        "as predicted": "inside",
        "differs": "outside",
        "not as predicted": "outside",
    }
    assert claim.expected.side(*ends) == side.get(claim.verdict, claim.expected.side(*ends)), (
        claim.id
    )
    if claim.verdict == "undecided":
        assert claim.expected.side(*ends) == "across", claim.id


def check_claims(claims: list[dict[str, Any]], *, smoke: bool) -> None:
    """claims.json: at least one claim, each with an id of its own."""
    assert claims
    assert len({claim["id"] for claim in claims}) == len(claims)
    for claim in claims:
        check_claim(claim, smoke=smoke)


def check_folder(folder: Path, *, smoke: bool) -> None:
    """A complete run folder."""
    for name in (*FILES, *FIGURES):
        assert (folder / name).stat().st_size > 0, name
    assert not (folder / "parts").exists()
    assert isinstance(_read(folder / "config.json"), dict)
    check_claims(_read(folder / "claims.json"), smoke=smoke)
    check_provenance(folder)
    with xr.open_dataset(folder / "result.nc") as data:
        assert data.sizes
        assert not any(str(name).startswith("dim_") for name in data.sizes), "name every dimension"
    ElementTree.parse(folder / "figure.svg")
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    for net in folder.glob("nets/*"):
        with safe_open(net, "pt") as tensors:
            two_layer = tensors.metadata()["kind"] == "two_layer"
            assert {"w", "v"} <= set(tensors.keys()) if two_layer else "w" in tensors.keys()  # noqa: SIM118
            assert {"kind", "p"} <= set(tensors.metadata())
    check_page((folder / "report.html").read_text(encoding="utf-8"))


def check_provenance(folder: Path) -> None:
    """provenance.json names every other file, and no machine."""
    provenance = _read(folder / "provenance.json")
    assert provenance.keys() >= PROVENANCE_KEYS
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert set(provenance["files"]) == present - {"provenance.json"}
    assert provenance["command"].startswith(f"tacit run {provenance['id']} ")
    for text in (json.dumps(provenance), (folder / "report.html").read_text(encoding="utf-8")):
        assert str(folder.resolve().parent) not in text
        assert str(Path.home()) + "/" not in text


def check_page(page: str) -> None:
    """A report is one file: nothing in it is fetched from elsewhere."""
    assert page.lstrip().startswith("<!doctype html>")
    for fetched in ('src="http', "src='http", "<script", "<link", "@import", 'href="http'):
        assert fetched not in page, fetched


def check_document(text: str, *, smoke: bool) -> list[dict[str, Any]]:
    """The `--json` document of run and verify; returns its runs."""
    document = json.loads(text)
    assert list(document) == ["runs"]
    for run in document["runs"]:
        assert list(run) == RUN_KEYS
        assert Path(run["folder"]).name == run["id"]
        assert run["seconds"] >= 0
        check_claims(run["claims"], smoke=smoke)
    return document["runs"]


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
