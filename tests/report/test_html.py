"""Reports are single files that tell the whole story, safely."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from contract import check_page
from tacit import api
from tacit.lab.registry import catalogue
from tacit.report.html import summary_page
from tacit.report.publish import publish_summary

VOID = {"meta", "br", "img", "link"}


class Balance(HTMLParser):
    """Every element that is opened is closed, and ids and texts are collected on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Balance:
    check_page(page)
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    assert len(set(parser.ids)) == len(parser.ids)
    return parser


def test_the_report_of_a_run(only_fakes: Path) -> None:
    run = api.run("toy2020.mean", scale="laptop", K=6)
    page = read((run.folder / "report.html").read_text(encoding="utf-8"))
    for told in (
        "The mean of noise",
        "Ada Toy and Bo Block (2020), Theorem 1.2",
        "The mean is near zero, in units of [α] & so on",
        "Toys & <other> means",
        "Measured 2 where 3 was expected",
        run.provenance["command"],
        "tacit.run('toy2020.mean', scale='laptop', seed=0, device='cpu', K=6)",
        "@article{toy2020,",
        "@software{tacit,",
        f"torch {run.provenance['torch']}",
        "0.1, 0.2",
        "Checks of our own accuracy",
        "Deterministic: a sum.",
    ):
        assert told in page.text, told
    assert "Smoke scale." not in page.text


def test_smoke_says_that_it_shows_nothing(only_fakes: Path) -> None:
    run = api.run("toy2020.mean", scale="smoke")
    assert "Smoke scale." in read((run.folder / "report.html").read_text(encoding="utf-8")).text


def test_the_page_over_all_runs(only_fakes: Path) -> None:
    runs = [api.run(id, scale="laptop") for id in ("home2019.only", "toy2020.mean")]
    path = publish_summary(Path("runs"), runs, ["exhibit odd2021.raises could not run: <why>"])
    page = read(path.read_text(encoding="utf-8"))
    for told in (
        "What 2 papers claim, run and measured",
        "8 claims: 6 hold, 2 differ; 2 checks of our own accuracy, 2 met.",
        "2 members, judged together",
        "Bar: 3 sd (derived from it).",
        "Inside: any noise.",
        "exhibit odd2021.raises could not run: <why>",
        "What differs",
        "At home",
        "tacit run toy2020.mean --scale laptop",
    ):
        assert told in page.text, told
    html = path.read_text(encoding="utf-8")
    for id in ("home2019.only", "toy2020.mean"):
        assert f'href="{id}/report.html"' in html
    assert html.count('src="data:image/svg+xml;base64,') == 2


def test_a_figure_scrolls_on_a_narrow_screen(only_fakes: Path) -> None:
    run = api.run("toy2020.mean", scale="smoke")
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    _, narrow = page.split("@media screen and (max-width: 44rem) {")
    rules = narrow.partition("\n}")[0]
    assert ".plate { overflow-x: auto; }" in rules
    assert ".plate svg, .plate img { min-width: 640px;" in rules


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '" onload="x'])
def test_texts_are_escaped(text: str, only_fakes: Path) -> None:
    run = api.run("toy2020.mean", scale="smoke")
    found = catalogue()
    exhibit = replace(found.exhibits["toy2020.mean"], title=text, claim=text)
    odd = replace(run, claims=tuple(replace(claim, statement=text) for claim in run.claims))
    page = read(summary_page({"toy2020.mean": exhibit}, found.papers, [odd], [text]))
    assert text in page.text
