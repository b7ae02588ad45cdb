"""Files are looked for, downloaded and checked: a server on this machine gives whole, damaged and cut files."""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pooch
import pytest

from image_server import Server, serving, tiny_cifar, tiny_images, tiny_mnist
from tacit.base.cache import cache_folder
from tacit.data.images import DATASETS, Dataset, download, fetch, load_images, places, present
from tacit.errors import RunError

IMAGES = "train-images-idx3-ubyte.gz"
LABELS = "train-labels-idx1-ubyte.gz"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no $TACIT_DATA, no proxies, no waiting."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("TACIT_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(download, "RETRIES", 0)
    return tmp_path / "xdg" / "tacit"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving({}) as running:
        yield running


def published(
    made: tuple[Dataset, dict[str, bytes]], server: Server, monkeypatch: pytest.MonkeyPatch
) -> Dataset:
    """The set in the catalogue, its files on the server."""
    dataset, files = made
    server.files.update(files)
    dataset = replace(dataset, sources=(server.address,))
    monkeypatch.setitem(DATASETS, dataset.name, dataset)
    return dataset


@pytest.fixture
def mnist(server: Server, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    return published(tiny_mnist(), server, monkeypatch)


def left_over(cache: Path) -> list[str]:
    return [path.name for path in cache.rglob("*") if path.name.startswith((".", "tmp"))]


def test_the_cache_is_where_pooch_has_it(monkeypatch):
    for stated in ("/some/where", "relative", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", stated)
        assert cache_folder() == Path(pooch.os_cache("tacit"))
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path(pooch.os_cache("tacit"))


def test_a_part_is_downloaded_once_and_only_its_files(mnist, server, cache):
    assert not present("mnist")
    loaded = load_images("mnist", "train")
    x, y = tiny_images(0, (5, 4, 3))
    assert np.array_equal(loaded.x, x[..., None])
    assert np.array_equal(loaded.y, y)
    assert server.asked == [IMAGES, LABELS]
    load_images("mnist", "train")
    assert server.asked == [IMAGES, LABELS]
    assert sorted(path.name for path in cache.rglob("*.gz")) == [IMAGES, LABELS]
    assert left_over(cache) == []
    assert fetch(mnist)
    assert not fetch(mnist)
    assert present("mnist")
    assert len(server.asked) == 4


def test_the_folder_that_the_user_names_comes_first(mnist, server, cache, tmp_path, monkeypatch):
    fetch(mnist)
    elsewhere = tmp_path / "data"
    (cache / "mnist").rename(elsewhere)
    (tmp_path / "mine").mkdir()
    elsewhere.rename(tmp_path / "mine" / "mnist")
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "mine"))
    server.files.clear()
    assert len(load_images("mnist", "test")) == 2
    assert not fetch(mnist)
    # what is missing there is taken from the cache
    (cache / "mnist").mkdir()
    (tmp_path / "mine" / "mnist" / LABELS).rename(cache / "mnist" / LABELS)
    assert len(load_images("mnist", "train")) == 5


def test_an_archive_is_unpacked_and_goes(server, cache, monkeypatch):
    cifar = published(tiny_cifar(), server, monkeypatch)
    loaded = load_images("cifar10", "train")
    parts = [tiny_images(number, (3, 32, 32, 3)) for number in range(5)]
    # one batch is downloaded with the others
    assert np.array_equal(loaded.x, np.concatenate([x for x, _ in parts]))
    assert np.array_equal(loaded.y, np.concatenate([y for _, y in parts]))
    assert server.asked == [cifar.archive.name]
    assert sorted(os.listdir(cache)) == ["cifar-10-batches-bin"]
    fetch(cifar)
    assert np.array_equal(load_images("cifar10", "test").x, tiny_images(5, (3, 32, 32, 3))[0])


@pytest.mark.parametrize("harm", ["damaged", "short", "cut", "absent"])
def test_a_bad_download_is_told_and_leaves_nothing(harm, mnist, server, cache):
    good = server.files[IMAGES]
    if harm == "damaged":
        server.files[IMAGES] = good[:-9] + bytes([good[-9] ^ 1]) + good[-8:]
    elif harm == "short":
        server.files[IMAGES] = good[:-3]
    elif harm == "cut":
        server.cut.add(IMAGES)
    else:
        del server.files[IMAGES]
    with pytest.raises(RunError, match=r"127\.0\.0\.1: ") as told:
        fetch(mnist)
    message = str(told.value)
    # a cut transfer is noticed by its length, or at last by its hash
    reasons = {"cut": ["no answer"], "absent": ["HTTP status 404"]}.get(harm, [])
    assert any(words in message for words in [*reasons, "came damaged or truncated"])
    for words in (IMAGES, server.address, str(cache / "mnist"), "--set dataset=digits"):
        assert words in message
    assert "\n" not in message
    assert list(cache.rglob("*.gz")) == []
    assert left_over(cache) == []


def test_a_mirror_helps_where_the_publisher_fails(mnist, server, monkeypatch):
    with serving({IMAGES: b"<html>gone</html>"}) as publisher:
        both = replace(mnist, sources=(publisher.address, server.address))
        assert fetch(both)
        # the publisher is asked for the first file only; the mirror, which gave it, for the rest
        assert publisher.asked == [IMAGES]
        assert len(server.asked) == 4
        assert present("mnist")


def test_a_server_that_is_busy_is_asked_again(mnist, server, monkeypatch):
    monkeypatch.setattr(download, "RETRIES", 1)
    monkeypatch.setattr(pooch.core.time, "sleep", lambda seconds: None)
    server.failures = 1
    assert fetch(mnist)
    assert server.asked[:2] == [IMAGES, IMAGES]


def test_a_good_copy_survives_a_bad_server(mnist, server, cache):
    fetch(mnist)
    server.files = dict.fromkeys(server.files, b"nonsense")
    (cache / "mnist" / LABELS).write_bytes(b"harmed")
    with pytest.raises(RunError, match=LABELS):
        fetch(mnist)
    assert (cache / "mnist" / LABELS).read_bytes() == b"harmed"
    (cache / "mnist" / LABELS).unlink()
    with pytest.raises(RunError, match="damaged or truncated"):
        load_images("mnist", "train")
    assert places.is_whole(cache / "mnist" / IMAGES, mnist.all_files[0])
    assert len(load_images("mnist", "test")) == 2


def test_a_damaged_file_in_the_cache_is_told_and_fetched_anew(mnist, server, cache):
    fetch(mnist)
    path = cache / "mnist" / IMAGES
    path.write_bytes(path.read_bytes()[:-5])
    assert not present("mnist")
    with pytest.raises(RunError) as told:
        load_images("mnist", "train")
    message = str(told.value)
    for words in (
        str(path),
        mnist.all_files[0].sha256,
        places.sha256_of(path),
        "`tacit data fetch mnist` downloads it anew",
    ):
        assert words in message
    assert fetch(mnist)
    assert len(load_images("mnist", "train")) == 5


def test_a_damaged_file_of_the_user_is_never_replaced(mnist, server, tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / IMAGES).write_bytes(b"mine")
    for call in (lambda: load_images("mnist"), lambda: fetch(mnist)):
        with pytest.raises(
            RunError, match=r"replace or remove that file \(`tacit data fetch mnist` does not touch"
        ):
            call()
    assert (tmp_path / "mnist" / IMAGES).read_bytes() == b"mine"


def test_a_damaged_file_of_the_user_does_not_hide_a_good_copy(
    mnist, server, cache, tmp_path, monkeypatch
):
    fetch(mnist)
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    damaged = tmp_path / "mnist" / IMAGES
    damaged.write_bytes(b"mine")
    server.files.clear()
    with pytest.warns(UserWarning, match="is damaged and .* is used") as told:
        assert len(load_images("mnist", "train")) == 5
    (line,) = (str(one.message) for one in told)
    assert str(damaged) in line
    assert str(cache / "mnist" / IMAGES) in line
    assert present("mnist")
    assert not fetch(mnist)
    # where both are damaged, the user's is told
    (cache / "mnist" / IMAGES).write_bytes(b"too")
    with pytest.raises(RunError, match="does not touch"):
        load_images("mnist", "train")
    assert damaged.read_bytes() == b"mine"


def test_a_file_is_hashed_once(mnist, server, cache, monkeypatch):
    load_images("mnist", "train")
    opened = []
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda path, *a: opened.append(path.name) or real(path, *a))
    load_images("mnist", "train")
    assert opened == []  # the arrays are read by gzip itself
    os.utime(cache / "mnist" / LABELS, ns=(1, 1))
    load_images("mnist", "train")
    assert opened == [LABELS]


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_no_network_and_no_copy_says_what_to_put_where(name, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "nowhere"))
    # port 1 of this machine answers nobody
    dead = replace(DATASETS[name], sources=("http://127.0.0.1:1/one/", "http://127.0.0.1:1/two/"))
    monkeypatch.setitem(DATASETS, name, dead)
    with pytest.raises(RunError) as told:
        load_images(name, "test")
    message = str(told.value)
    for words in (
        f"{name} is not here and could not be downloaded",
        dead.files["test"][0].name,
        "http://127.0.0.1:1/one/ or http://127.0.0.1:1/two/",
        str(cache),
        f"$TACIT_DATA is {tmp_path / 'nowhere'}, which is no folder",
        "--set dataset=digits",
    ):
        assert words in message
    assert "\n" not in message
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    with pytest.raises(RunError, match=f"into {tmp_path}"):
        load_images(name, "test")


def test_without_pooch_the_rest_works(mnist, monkeypatch):
    real = builtins.__import__

    def no_pooch(name, *rest):
        if name == "pooch":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_pooch)
    with pytest.raises(RunError, match="pooch, which downloads, is not installed"):
        load_images("mnist")
    assert len(load_images("digits")) == 1198


def test_a_cache_that_cannot_be_written_is_told(mnist, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(RunError, match=r"cannot be written \(Not a directory\)"):
        fetch(mnist)


def test_an_archive_without_the_published_files_is_told(server, cache, monkeypatch):
    cifar = published(tiny_cifar(), server, monkeypatch)
    changed = tuple(replace(file, sha256="0" * 64) for file in cifar.files["test"])
    monkeypatch.setitem(DATASETS, "cifar10", replace(cifar, files={**cifar.files, "test": changed}))
    with pytest.raises(RunError, match=r"does not hold the published test_batch\.bin"):
        load_images("cifar10", "test")
    assert list(cache.rglob("*.bin")) == []


def test_numbers_of_images_and_labels_must_agree(server, monkeypatch):
    published(tiny_mnist(train=5, labels=4), server, monkeypatch)
    with pytest.raises(RunError, match=f"5 images and 4 labels.*{IMAGES} and .*{LABELS}"):
        load_images("mnist")


def test_the_bar_counts_what_comes_in(mnist, server, monkeypatch):
    """On a terminal pooch gets a bar of ours: every call that it makes is answered."""
    drawn = []

    class Terminal:
        def __init__(self):
            self.encoding = "utf-8"

        def isatty(self):
            return True

        def write(self, text):
            drawn.append(text)

        def flush(self):
            pass

    monkeypatch.setattr(download.sys, "stderr", Terminal())
    assert fetch(mnist)
    assert IMAGES in "".join(drawn)
