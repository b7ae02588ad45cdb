"""The benchmarks: each that `make bench` calls can be called; the signs that are flipped are the right ones."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from benchmarks.__main__ import CHECKS
from benchmarks.flipped_signs import flips, main

ROOT = Path(__file__).resolve().parents[1]
MEASURES = sorted(
    path.stem
    for path in (ROOT / "benchmarks").glob("*.py")
    if not path.stem.startswith("_") and path.stem not in CHECKS
)


@pytest.mark.parametrize("name", MEASURES)
def test_make_bench_can_call_it(name: str) -> None:
    tree = ast.parse((ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8"))
    (found,) = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"
    ]
    assert len(found.args.args) == len(found.args.defaults), "it wants words that it is not given"


def test_checks_are_there() -> None:
    assert all((ROOT / "benchmarks" / f"{name}.py").exists() for name in CHECKS)


def test_each_sign_is_flipped_once_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    lines = [
        "from tools import least, most",  # a name that is not called
        "def f(a: int, *, most: int = -1) -> int:",  # nor is this one
        "    # a < b",
        '    told = "a < b"',
        "    if a <= 2 and not -a:",
        "        return -a",
        "    return least([a]) + judge(Expected(max=1)) - values.max()",
        "sign = a if told else -1",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = [(flip.line, flip.sign) for flip in flips(path)]
    assert found == [
        (5, "<="),
        (7, "least"),
        (7, "+"),
        (7, "max"),
        (7, "-"),
        (7, "max"),
    ]
    for flip in flips(path):
        changed = flip.text.splitlines()
        assert [k for k, line in enumerate(changed) if line != lines[k]] == [flip.line - 1]
    texts = [flip.text.splitlines()[-2].strip() for flip in flips(path)][1:]
    assert texts == [
        "return most([a]) + judge(Expected(max=1)) - values.max()",
        "return least([a]) - judge(Expected(max=1)) - values.max()",
        "return least([a]) + judge(Expected(min=1)) - values.max()",
        "return least([a]) + judge(Expected(max=1)) + values.max()",
        "return least([a]) + judge(Expected(max=1)) - values.min()",
    ]


def test_a_flip_that_would_not_compile_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text("f(min=1, max=2)\n", encoding="utf-8")
    assert list(flips(path)) == []


def test_files_and_tests_are_both_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["a.py"]) == 2
    assert main(["a.py", "--"]) == 2
    assert "FILE... -- TEST..." in capsys.readouterr().err
