"""Annotations, shapes too, are enforced in every test: the hook is set before tacit is imported."""

from jaxtyping import install_import_hook

install_import_hook("tacit", "typecheck.checked")

import os  # noqa: E402
import secrets  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from pathlib import Path  # noqa: E402

import hypothesis  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402

import fakes  # noqa: E402
from benches import new_bench  # noqa: E402
from tacit.lab import registry  # noqa: E402
from tacit.lab.bench import Bench  # noqa: E402

os.environ["MPLBACKEND"] = "agg"

# fixed examples, so that a run repeats; no clock, since the machine has neighbours
hypothesis.settings.register_profile("tacit", max_examples=25, deadline=None, derandomize=True)
hypothesis.settings.load_profile("tacit")


@pytest.fixture(scope="module", autouse=True)
def store_of_the_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fixtures that several tests share train their nets themselves, as tests do."""
    with pytest.MonkeyPatch.context() as patch:
        empty_store(tmp_path_factory, patch)
        yield


@pytest.fixture(autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store of trained nets for each test: none may hide a training that does not repeat."""
    return empty_store(tmp_path_factory, monkeypatch)


def empty_store(factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch) -> Path:
    """A folder that is not there yet."""
    folder = factory.getbasetemp() / "models" / secrets.token_hex(8)
    patch.setenv("TACIT_MODELS", str(folder))
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on a GPU run where there is one."""
    marked = [item for item in items if item.get_closest_marker("cuda")]
    if marked and not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA GPU"))


@pytest.fixture
def bench() -> Bench:
    """What a run is given, with its parts in memory."""
    return new_bench()


@pytest.fixture
def only_fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A laboratory in which nothing but the fake papers is installed, and an empty working folder.

    The value is a folder on the path in which `fakes.install` can put further packages.
    """
    site, here = tmp_path / "site", tmp_path / "here"
    site.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(registry, "HOME", "fakes.papers")
    monkeypatch.setattr("tacit.base.threads.cores", lambda: 1)  # a patch stays in this process
    registry.catalogue.cache_clear()
    fakes.install(site, toy2020="fakes.toy", odd2021="fakes.odd")
    yield site
    registry.catalogue.cache_clear()
