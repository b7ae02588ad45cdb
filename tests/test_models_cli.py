"""`tacit models`: a table for people, one JSON document for programs, and clearing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.cli import status
from tacit.lab.models.shelf import address_of

Capture = pytest.CaptureFixture[str]
RECIPE = {"training": "logits", "data": "digits", "p": 3.0, "width": 50, "epochs": 3, "seed": 7}
OTHER = RECIPE | {"p": 4.0, "start": "0" * 64}


@pytest.fixture
def nets(store: Path) -> list[str]:
    """Two entries and a checkpoint, by hand: listing reads no weights."""
    store.mkdir(parents=True)
    addresses = [address_of(recipe) for recipe in (RECIPE, OTHER)]
    for address, recipe, day in zip(addresses, (RECIPE, OTHER), (16, 17), strict=True):
        record = {"recipe": recipe, "made": f"2026-11-{day}T09:44:00+00:00", "seconds": 1.5}
        (store / f"{address}.json").write_text(json.dumps(record))
        (store / f"{address}.safetensors").write_bytes(b"x" * 200_000)
    (store / f"{address_of({})}.checkpoint.safetensors").write_bytes(b"x" * 1000)
    return addresses


def test_an_empty_store_is_listed_and_cleared(store: Path, capsys: Capture) -> None:
    assert status(["models", "list"]) == status(["models", "clear"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        f"0 trained nets, 0.0 kB in {store}",
        f"removed 0 trained nets, 0.0 kB from {store}",
    ]
    assert not store.exists()


def test_list_says_what_each_net_is(
    nets: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert status(["models", "list"]) == 0
    unfinished, first, second, total = capsys.readouterr().out.splitlines()
    assert first.split() == (
        f"{nets[0][:12]} digits: p 3, width 50, epochs 3, seed 7 2026-11-16 09:44 0.2 MB".split()
    )
    assert second.startswith(nets[1][:12])
    assert "000" not in second
    assert unfinished.split()[1:] == ["unfinished", "1.0", "kB"]
    assert total.startswith("2 trained nets and 1 unfinished, 0.4 MB in ")


def test_json_has_the_recipes(nets: list[str], store: Path, capsys: Capture) -> None:
    (store / f"{nets[1]}.json").write_text("[1, 2")  # damaged: told without words
    assert status(["models", "list", "--json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert printed.err == ""
    assert document["folder"] == str(store)
    found = {one["address"]: one for one in document["models"]}
    assert found[nets[0]]["recipe"] == RECIPE
    assert found[nets[0]]["bytes"] > 200_000
    assert found[nets[0]]["seconds"] == 1.5
    assert found[nets[1]]["recipe"] is None
    assert {one["kind"] for one in document["models"]} == {"net", "unfinished"}


def test_clear_removes_what_is_named_or_all(nets: list[str], store: Path, capsys: Capture) -> None:
    assert status(["models", "clear", "zzz"]) == 2
    assert "no trained net has an address that begins with 'zzz'" in capsys.readouterr().err
    assert status(["models", "clear", nets[0][:12]]) == 0
    assert capsys.readouterr().out == f"removed 1 trained net, 0.2 MB from {store}\n"
    assert status(["models", "clear"]) == 0
    assert "removed 1 trained net and 1 unfinished, 0.2 MB" in capsys.readouterr().out
    assert list(store.iterdir()) == []


def test_a_store_that_is_no_folder_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TACIT_MODELS", str(tmp_path / "file"))
    assert status(["models", "list"]) == 1
    assert "set TACIT_MODELS to a folder" in capsys.readouterr().err


def test_a_record_with_odd_numbers_is_listed(nets: list[str], store: Path, capsys: Capture) -> None:
    record = store / f"{nets[0]}.json"
    for text in ('{"seconds": 1' + "0" * 400 + "}", '{"seconds": NaN, "recipe": {"p": Infinity}}'):
        record.write_text(text)
        assert status(["models", "list"]) == status(["models", "list", "--json"]) == 0
    capsys.readouterr()
