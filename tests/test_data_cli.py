"""`tacit data`: a table for people, one JSON document for programs, one line for whatever is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from image_server import Server, serving, tiny_mnist
from tacit.cli import status
from tacit.data.images import DATASETS, download

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A tiny MNIST on a server of this machine, nothing in the cache, and no other server at all."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("TACIT_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(download, "RETRIES", 0)
    dataset, files = tiny_mnist()
    with serving(files) as running:
        for name, known in DATASETS.items():
            monkeypatch.setitem(DATASETS, name, replace(known, sources=("http://127.0.0.1:1/",)))
        monkeypatch.setitem(DATASETS, "mnist", replace(dataset, sources=(running.address,)))
        yield running


def listed(capsys: Capture) -> dict[str, dict[str, object]]:
    assert status(["data", "list", "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return {one["name"]: one for one in json.loads(printed.out)["datasets"]}


def test_list_says_where_sets_are_or_how_to_get_them(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert status(["data", "list"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    for told in (
        "digits  1,198 + 599 images of 8 x 8 x 1",
        "bundled with scikit-learn",
        "not here: tacit data fetch cifar10, 170.1 MB",
        "not here: tacit data fetch fashion-mnist, 30.9 MB",
        "Zalando Research; licence: MIT",
        "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    ):
        assert told in printed.out
    assert max(map(len, printed.out.splitlines())) <= 80


def test_fetch_downloads_once(server: Server, tmp_path: Path, capsys: Capture) -> None:
    folder = str(tmp_path / "xdg" / "tacit" / "mnist")
    assert listed(capsys)["mnist"]["missing"] == [f.name for f in DATASETS["mnist"].all_files]
    assert status(["data", "fetch", "mnist", "digits", "mnist"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        f"mnist: downloaded into {folder}",
        "digits: here already, bundled with scikit-learn",
    ]
    assert printed.err == ""
    assert len(server.asked) == 4
    assert status(["data", "fetch", "mnist"]) == 0
    assert capsys.readouterr().out == f"mnist: here already, {folder}\n"
    about = listed(capsys)["mnist"]
    assert (about["found"], about["missing"], about["damaged"]) == ([folder], [], [])
    assert len(server.asked) == 4


def test_a_damaged_file_is_listed_and_fetched_anew(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert status(["data", "fetch", "mnist"]) == 0
    path = tmp_path / "xdg" / "tacit" / "mnist" / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-1])
    capsys.readouterr()
    assert listed(capsys)["mnist"]["damaged"] == [str(path)]
    monkeypatch.setenv("COLUMNS", "500")
    assert status(["data", "list"]) == 0
    assert f"damaged: {path}; tacit data fetch mnist" in capsys.readouterr().out
    assert status(["data", "fetch", "mnist"]) == 0
    assert "mnist: downloaded into" in capsys.readouterr().out
    assert listed(capsys)["mnist"]["damaged"] == []


def test_what_cannot_be_fetched_is_one_line_and_the_rest_is_fetched(capsys: Capture) -> None:
    assert status(["data", "fetch", "cifar10", "mnist"]) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("mnist: downloaded into ")
    (line,) = printed.err.splitlines()
    assert line.startswith("tacit: cifar10 is not here and could not be downloaded (127.0.0.1: no")
    assert "unpack cifar-10-binary.tar.gz from http://127.0.0.1:1/ into " in line
    assert "--set dataset=digits" in line


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ([], "missing command; see `tacit data --help`"),
        (["fetch"], "missing argument 'NAME'; see `tacit data fetch --help`"),
        (["fetch", "mnist", "minst"], "there is no data set 'minst'; near: mnist"),
        (["list", "mnist"], "unexpected extra argument"),
        (["drop"], "no such command 'drop'"),
    ],
)
def test_a_wrong_call_is_one_line(
    arguments: list[str], answer: str, server: Server, capsys: Capture
) -> None:
    assert status(["data", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("tacit: ")
    assert answer in line
    assert server.asked == []


def test_names_are_completed(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TACIT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "tacit data fetch fa")
    monkeypatch.setenv("COMP_CWORD", "3")
    with pytest.raises(SystemExit):
        status([])
    assert "fashion-mnist" in capsys.readouterr().out.split()
