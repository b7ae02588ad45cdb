"""The package itself: quick to import, one version, the public names."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tacit
from tacit.version import __version__

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "xarray", "matplotlib", "scipy", "numpy", "sklearn", "pandas", "jinja2")


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert tacit.__version__ == __version__ == project["version"]


def test_public_names_come_when_they_are_asked_for() -> None:
    assert {"run", "exhibits", "RunRecord"} <= set(dir(tacit))
    assert callable(tacit.run)
    assert tacit.lab.__name__ == "tacit.lab"
    with pytest.raises(AttributeError, match="has no attribute 'attick'"):
        tacit.attick  # noqa: B018
    with pytest.raises(AttributeError):
        tacit._hidden  # noqa: B018


@pytest.mark.parametrize(
    "code",
    [
        "import tacit",
        "from tacit.cli import status; status(['--help'])",
        "from tacit.cli import status; status(['list'])",
        "from tacit.cli import status; status(['cite'])",
        "from tacit.cli import status; status(['run', 'nothing'])",
        "from tacit.cli import status; import tacit.lab.registry as r;"
        "[status(['show', id]) for id in r.catalogue().exhibits]",
    ],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    check = f"{code}\nimport sys\nprint(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", check],
        cwd=ROOT / "src",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stdout
