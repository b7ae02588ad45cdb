"""The code on the pages does what the pages say."""

import re
from pathlib import Path

import torch

import fakes
from tacit.cli import status
from tacit.lab.registry import catalogue

ROOT = Path(__file__).parents[1]


def code_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


def test_the_flow_page_prints_what_it_says():
    names: dict = {}
    for block in code_of("docs/guide/flow.md"):
        exec(block, names)
    flowed, centres = names["flowed"], names["mixture"].centres
    assert flowed.stopped == ["loss"]
    assert abs(flowed.ended[0].log_time - 9.7) < 0.05
    assert flowed.exactness[0].energy_error < 1e-3
    assert names["learned_directions"](flowed.net, centres).learned
    distance = names["function_distance"](flowed.net, names["centre_net"](names["mixture"], 3.0))
    assert abs(distance.lower - 0.0141) < 1e-4
    assert names["quick"].exactness[0].scout_drift < 0.01
    assert names["many"].history[2].cosines.shape[1:] == (200, 5)


def test_the_smallest_exhibit_of_contributing_runs(only_fakes, monkeypatch, capsys):
    for block in code_of("CONTRIBUTING.md"):
        path = only_fakes / re.match(r"# (\S+?):", block).group(1)
        path.parent.mkdir(exist_ok=True)
        path.write_text(block)
    fakes.install(only_fakes, smith2027="smith_exhibits")
    catalogue.cache_clear()
    assert status(["run", "smith2027.fair", "--out", "out"]) == 0
    assert "✓ holds" in capsys.readouterr().out
    assert status(["run", "smith2027.fair", "--set", "n=0", "--out", "out"]) == 2


def test_the_radii_page_prints_what_it_says():
    (block,) = code_of("docs/guide/radii.md")
    lines = [line for line in block.splitlines() if line.startswith("radius(")]
    names: dict = {"torch": torch}
    exec(block.replace("20_000", "2_000"), names)
    for line in lines:
        call, promised = line.split("#")
        assert abs(float(eval(call, names)) - float(promised.split(":")[0])) < 2e-3


def test_the_attacks_page_prints_what_it_says():
    (block,) = code_of("docs/guide/attacks.md")
    names: dict = {}
    exec(block, names)
    assert names["attacked"].robust_accuracy.tolist() == [1.0, 0.0]
    robust = (names["found"].radius > 0.6).double().mean()
    assert robust == 1.0


def test_every_exhibit_is_in_the_readme():
    page = (ROOT / "README.md").read_text()
    for exhibit in catalogue().exhibits.values():
        assert f"`{exhibit.id}`" in page


def test_the_averaging_page_prints_what_it_says():
    names: dict = {}
    checked = 0
    for block in code_of("docs/guide/averaging.md"):
        lines = block.splitlines()
        shown = [line for line in lines if re.match(r"[\w(][^=]*(slack=[^=]*)?  # [.\d]", line)]
        exec("\n".join(line for line in lines if line not in shown), names)
        for line in shown:
            call, promised = line.split("#", 1)
            number = float(re.match(r"[\d.]+(e-\d+)?", promised.strip()).group())
            assert abs(float(eval(call, names)) - number) < 2e-3
            checked += 1
    assert checked == 14
