"""A digest of code changes with what a function reaches, and with nothing else."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.base import sources

FILES = {
    "__init__.py": "from lab_of_smith.training import train\n",
    "training.py": '''"""Trains."""
from __future__ import annotations

import numpy as np
from typing import TYPE_CHECKING

from lab_of_smith import helpers
from lab_of_smith.nets import Net
from .losses import loss as the_loss

if TYPE_CHECKING:
    from lab_of_smith.figure import Figure

STEP = 0.1


def train(n: int, figure: Figure | None = None) -> Net:
    """Train."""
    from lab_of_smith import lazy

    return Net(helpers.twice(n) * STEP * the_loss(n) + lazy.late(n)).scaled


def judged(n: int) -> bool:
    """A claim."""
    return train(n) > 0
''',
    "helpers.py": "def twice(n):\n    return 2 * n\n\n\ndef unused(n):\n    return n\n",
    "losses.py": "def loss(n):\n    return inner(n)\n\n\ndef inner(n):\n    return n + 1\n",
    "lazy.py": "def late(n):\n    return n\n",
    "figure.py": "class Figure:\n    size = 3\n",
    "nets.py": """from lab_of_smith.kinds import register


class Net(float):
    @property
    def scaled(self):
        return self * 2


register(Net, certificate="lab_of_smith.proof:radius")
""",
    "kinds.py": """KINDS = {}


def register(cls, **facets):
    KINDS[cls] = facets


def radius(net):
    return KINDS[type(net)].certificate(net)
""",
    "proof.py": "def radius(net):\n    return 0\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A package that is worked on; calling it edits a file."""
    home = tmp_path / "lab_of_smith"
    home.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))

    def edit(name: str, old: str = "", new: str = "") -> None:
        text = (home / name).read_text()
        assert old in text
        (home / name).write_text(text.replace(old, new))
        forget()

    for name, text in FILES.items():
        (home / name).write_text(text)
    forget()
    yield edit
    forget()


def forget() -> None:
    for cached in vars(sources).values():
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()
    importlib.invalidate_caches()


def digest(name: str = "train", module: str = "lab_of_smith.training") -> str:
    return sources.code_digest((module, name))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("training.py", "* STEP", "/ STEP"),
        ("training.py", "STEP = 0.1", "STEP = 0.2"),
        ("helpers.py", "2 * n", "3 * n"),
        ("losses.py", "n + 1", "n + 2"),
        ("lazy.py", "return n", "return -n"),
        ("nets.py", "self * 2", "self * 3"),
        ("kinds.py", "KINDS[cls] = facets", "KINDS[cls] = dict(facets)"),
    ],
)
def test_what_is_reached_changes_it(package, file, old, new):
    before = digest()
    package(file, old, new)
    assert digest() != before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("training.py", '"""Train."""', '"""Train, and say more."""'),
        ("training.py", "    return Net(", "    # why\n    return Net("),
        ("training.py", "train(n) > 0", "train(n) > 1"),
        ("helpers.py", "    return n\n", "    return -n\n"),
        ("figure.py", "size = 3", "size = 4"),
        ("proof.py", "return 0", "return 1"),
    ],
)
def test_what_is_not_reached_does_not(package, file, old, new):
    before = digest()
    package(file, old, new)
    assert digest() == before


def test_a_late_reference_counts_for_those_who_ask_for_it(package):
    asks = sources.code_digest(("lab_of_smith.training", "train"), ("lab_of_smith.kinds", "radius"))
    package("proof.py", "return 0", "return 1")
    again = sources.code_digest(
        ("lab_of_smith.training", "train"), ("lab_of_smith.kinds", "radius")
    )
    assert asks != again


def test_dotted_names_and_names_of_tacit_itself_are_followed(package):
    package(
        "training.py",
        "STEP = 0.1",
        "STEP = 0.1\nimport lab_of_smith.helpers\nimport tacit\n\n\ndef far(n):\n"
        "    return lab_of_smith.helpers.unused(n) + tacit.attack.apgd(n) + tacit.audit(n)\n",
    )
    reached = {
        line.partition(":")[0] for line in sources._reached([("lab_of_smith.training", "far")])
    }
    assert {"lab_of_smith.helpers", "tacit.attack.ball.apgd", "tacit.auditing.audit"} <= reached


@pytest.mark.parametrize(
    ("file", "text", "use", "edit"),
    [
        (
            "stars.py",
            "def seen(n):\n    return 1\n",
            "from lab_of_smith.stars import *\n",
            ("1", "2"),
        ),
        ("effect.py", "print(1)\n", "import lab_of_smith.effect\n", ("print(1)", "print(2)")),
        (
            "kept.py",
            "from lab_of_smith.kinds import KINDS, keep\n\n\n@keep\ndef one(n):\n    return 1\n",
            "from lab_of_smith import kept\n",
            ("return 1", "return 2"),
        ),
        (
            "finally_.py",
            "try:\n    A = 1\nfinally:\n    print(1)\n",
            "import lab_of_smith.finally_\n",
            ("print(1)", "print(2)"),
        ),
    ],
)
def test_what_counts_without_being_named(package, tmp_path, file, text, use, edit):
    (tmp_path / "lab_of_smith" / file).write_text(text)
    package(
        "kinds.py",
        "KINDS = {}",
        "KINDS = {}\n\n\ndef keep(f):\n    KINDS[f.__name__] = f\n    return f\n",
    )
    package("training.py", "STEP = 0.1", f"{use}STEP = 0.1")
    before = digest()
    package(file, *edit)
    assert digest() != before


def test_the_first_lines_of_a_package_count(package):
    before = digest("loss", "lab_of_smith.losses")
    package("__init__.py", "import train\n", "import train\nprint(1)\n")
    assert digest("loss", "lab_of_smith.losses") != before


def test_a_facade_leads_to_the_definition(package):
    before = digest("train", "lab_of_smith")
    package("helpers.py", "2 * n", "3 * n")
    assert digest("train", "lab_of_smith") != before


def test_it_is_the_same_in_another_process():
    start = ("tacit.train.flow.flow", "gradient_flow")
    code = f"from tacit.base.sources import code_digest; print(code_digest({start!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "5"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == sources.code_digest(start)


def test_training_does_not_reach_claims_figures_or_reports():
    reached = sources._reached([("tacit.papers.min2024.images.training", "train_chunk")])
    modules = {line.partition(":")[0] for line in reached}
    assert "tacit.train.descent.logits" in modules
    assert not any(
        module.startswith(("tacit.report", "tacit.lab.claims"))
        or module.endswith((".claims", ".figure"))
        for module in modules
    )


def test_libraries_and_scripts_are_not_followed():
    assert sources.followed("tacit.nets")
    assert not sources.followed("torch.nn")
    assert not sources.followed("json")
    assert not sources.followed("__main__")
