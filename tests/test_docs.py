"""The code on the pages does what the pages say."""

import ast
import importlib.util
import re
import sys
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

import fakes
from tacit.cli import status
from tacit.lab.registry import catalogue

ROOT = Path(__file__).parents[1]


def code_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


@pytest.fixture
def fast_and_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder and cache; annotations are enforced in the tests of what is called."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.usefixtures("fast_and_clean")
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
    """In the table of papers, by its name."""
    page = (ROOT / "README.md").read_text()
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    for exhibit in catalogue().exhibits.values():
        assert exhibit.name in rows[exhibit.paper].split("|")[-2].replace(",", " ").split()


@pytest.mark.usefixtures("fast_and_clean")
def test_the_purification_page_runs():
    names: dict = {}
    for block in code_of("docs/guide/purification.md"):
        exec(block, names)
    points = names["points"]
    for net in (names["clean"], names["pure"]):
        assert float((points.y * net(points.x) > 0).double().mean()) > 0.9


@pytest.mark.usefixtures("fast_and_clean")
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


def test_the_estimator_page_prints_what_it_says(fast_and_clean):
    """Lines `value  # promise`: a number to two digits, True, or a shape."""
    names: dict = {}
    checked = 0
    for block in code_of("docs/guide/estimator.md"):
        lines = block.splitlines()
        shown = [line for line in lines if re.match(r"[\w(]([^=]|==)*  # (\.?\d|True$|\(\d)", line)]
        rest = [line for line in lines if line not in shown]
        exec("\n".join(line for line in rest if "export_onnx" not in line), names)
        for line in shown:
            call, promised = (part.strip() for part in line.split("  # "))
            found, number = eval(call, names), ast.literal_eval(promised)
            if isinstance(number, float):
                assert found == pytest.approx(number, abs=0.011)
            else:
                assert found == number
            checked += 1
    assert checked == 9
    assert names["odd"].subclass_labels_.tolist() == 5 * [0] + 5 * [1]
    onnx = pytest.importorskip("onnx")
    names["head"].export_onnx(fast_and_clean / "head.onnx")
    onnx.checker.check_model(onnx.load(fast_and_clean / "head.onnx"))


def test_the_data_page_runs(fast_and_clean, monkeypatch):
    monkeypatch.delenv("TACIT_DATA", raising=False)
    for name in ("cat", "dog"):
        (fast_and_clean / "photos" / name).mkdir(parents=True)
        Image.new("RGB", (40, 30)).save(fast_and_clean / "photos" / name / "1.png")
    names: dict = {}
    for block in code_of("docs/guide/data.md"):
        exec(block, names)
    assert not names["present"]("mnist")
    assert names["load_images"]("digits").x.shape == (1198, 8, 8, 1)
    assert (names["folder"].classes, names["folder"].y.tolist()) == (("cat", "dog"), [0, 1])
    assert (names["mine"].x.shape, names["mine"].classes) == ((40, 5), ("no", "yes"))
    assert names["pixels"].x.shape == (599, 64)
    assert torch.equal(names["own"].x, names["again"].x)
    assert len(list((fast_and_clean / "features").iterdir())) == 1
    assert torch.allclose(names["ready"].train.norm(dim=1), torch.ones(599))


@pytest.mark.usefixtures("fast_and_clean")
@pytest.mark.slow
def test_the_page_on_deep_nets_runs():
    """All of it; the audit on few points. What resumes ends with the same weights."""
    names: dict = {}
    for block in code_of("docs/guide/deep.md"):
        exec(block.replace("limit=100", "limit=4"), names)
    shown, nets = (names["pixels"], names["labels"]), (names["plain"], names["robust"])
    clean, left = (
        [float(names["kept_right"](net, *shown, ball).mean()) for net in nets]
        for ball in (None, names["stronger"])
    )
    assert min(clean) > 0.9
    assert left[1] > left[0] + 0.2  # as the page's point is
    for mine, other in zip(
        names["once"].module.parameters(), names["again"].module.parameters(), strict=True
    ):
        assert torch.equal(mine, other)
    assert len(names["again"].losses) == 2
    looks = names["seen"].watched
    assert (looks[:-1] <= 0.5).all()
    assert len(looks) == len(names["seen"].losses) + 1


@pytest.mark.slow  # the estimator's page makes the same calls
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_readme_s_estimator_runs(fast_and_clean):
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype("float32")
    names = {"X": X[:100], "y": y[:100], "X_test": X[100:102], "y_test": y[100:102]}
    (block,) = (block for block in code_of("README.md") if "PolyReLUClassifier" in block)
    exec(block, names)
    assert (names["lower"] <= names["upper"]).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.slow
def test_the_guide_to_robust_heads_runs_on_digits(fast_and_clean, monkeypatch, capsys):
    path = ROOT / "docs/guide/robust_head.py"
    spec = importlib.util.spec_from_file_location("robust_head", path)
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "robust_head", script)  # its dataclass looks itself up
    spec.loader.exec_module(script)
    few = ["--train", "200", "--test", "100", "--points", "3", "--attacked", "2"]
    heads = script.main(["--dataset", "digits", *few, "--radii", "0.3", "--out", "out.png"])
    told = capsys.readouterr().out
    assert (fast_and_clean / "out.png").stat().st_size > 10_000
    for head in heads:
        assert head.name in told
        assert head.accuracy > 0.85
        assert (head.lower <= head.upper * (1 + 1e-6)).all()
        # clean first, then a radius: fewer are left
        assert np.diff(head.end_to_end) <= 0
    linear, _, mlp, ours, _ = heads
    assert linear.lower == pytest.approx(linear.upper, rel=0.01)  # exact from both sides
    assert np.median(ours.lower) > np.median(mlp.upper)


@pytest.mark.slow
def test_the_page_on_robust_heads_runs(fast_and_clean):
    names: dict = {}
    for block in code_of("docs/guide/robust-head.md"):
        exec(block, names)
    assert (names["lower"] <= names["upper"]).all()
    assert (names["lower"] > 0).any()
    x, y, whole = names["x"], names["y"], names["whole"]
    found = names["apgd"](whole, x, y, [1e-4, 3.0], box=(0.0, 1.0), steps=20)
    right = names["lower"] > 0
    assert found.robust_accuracy.tolist() == pytest.approx([right.mean(), 0.0])


FINDINGS = re.split(r"^## ", (ROOT / "docs/findings.md").read_text(encoding="utf-8"), flags=re.M)[
    1:
]


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda text: text.partition("\n")[0])
def test_each_finding_has_three_paragraphs_a_figure_its_command_and_what_would_refute_it(finding):
    """The figure is on the page; the command names exhibits that there are."""
    _, _, body = finding.partition("\n")
    told = re.sub(r"<!--.*?-->", "", body, flags=re.S)
    blocks = [block.strip() for block in told.strip().split("\n\n") if block.strip()]
    figures = [re.fullmatch(r"!\[[^\]]{20,}\]\((assets/[\w.-]+)\)", block) for block in blocks]
    pictures = [ROOT / "docs" / match[1] for match in figures if match]
    assert len(pictures) == 1, "one figure, with what it shows"
    assert pictures[0].exists()
    assert len(blocks) == 4, (
        "what was seen, how surely, and how to see or refute it; and the figure"
    )
    last = next(block for block in blocks if block.startswith("`tacit run"))
    command = re.match(r"`tacit run ([^`]*)`", last)
    assert command is not None
    ids = [word for word in command[1].partition(" --")[0].split() if word]
    assert ids, "which exhibit shows it"
    assert set(ids) <= set(catalogue().exhibits)
    assert "refute" in last
