"""Downloading published files with pooch, from the first address that gives them whole.

A download arrives in a folder of its own and moves to its place only when its SHA-256 is right: whatever is there
already is kept until then. Addresses are tried in the order of the catalogue, each `1 + RETRIES` times.
"""

import os
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from tacit.data.images.catalogue import DataFile, Dataset
from tacit.data.images.places import sha256_of

RETRIES = 1  # of each address, after a second
TIMEOUTS = (5, 30)  # seconds: to connect, and between two bytes
CHUNK = 1 << 16
PLAIN = {"Accept-Encoding": "identity"}  # a server's own gzip would change the bytes


class DownloadError(Exception):
    """No address gave the file whole: what each of them did."""


def download(dataset: Dataset, files: Sequence[DataFile], place: Path) -> None:
    """Put the files into the set's folder at that place; an `OSError` if nothing can be written there."""
    target = place / dataset.folder
    target.mkdir(parents=True, exist_ok=True)
    sources = list(dataset.sources)
    with TemporaryDirectory(dir=place, prefix=".download-") as name:
        arrived = Path(name)
        if dataset.archive:
            _retrieve(dataset.archive, sources, arrived)
            _unpack(arrived / dataset.archive.name, files, arrived)
        for file in files:
            if not dataset.archive:
                _retrieve(file, sources, arrived)
            os.replace(arrived / file.name, target / file.name)


def _retrieve(file: DataFile, sources: list[str], into: Path) -> None:
    """Download one file into the folder; the address that worked comes first from then on."""
    try:
        import pooch
        from requests.exceptions import RequestException
    except ImportError:
        raise DownloadError("pooch, which downloads, is not installed") from None
    reasons = []
    for source in sources:
        host = urlsplit(source).hostname
        registry = {file.name: f"sha256:{file.sha256}"}
        store = pooch.create(into, source, registry=registry, retry_if_failed=RETRIES)
        try:
            with _quiet(pooch.get_logger()), _bar(file) as bar:
                get = pooch.HTTPDownloader(bar, CHUNK, timeout=TIMEOUTS, headers=PLAIN)
                store.fetch(file.name, downloader=get)
        except RequestException as error:
            reasons.append(f"{host}: {_told(error)}")
        except ValueError:  # pooch's word for another hash
            reasons.append(f"{host}: {file.name} came damaged or truncated, its SHA-256 is wrong")
        else:
            sources.remove(source)
            sources.insert(0, source)
            return
    raise DownloadError("; ".join(reasons))


def _told(error: Exception) -> str:
    """A network's failure in a few words."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"HTTP status {status}" if status else f"no answer, {type(error).__name__}"


def _unpack(archive: Path, files: Sequence[DataFile], into: Path) -> None:
    """Write the files of the archive, whatever folder it has them in, and check each."""
    wanted = {file.name: file for file in files}
    with tarfile.open(archive) as packed:
        for member in packed:
            file = wanted.get(PurePosixPath(member.name).name)
            content = packed.extractfile(member) if file else None
            if file and content:
                path = into / file.name
                with path.open("wb") as stream:
                    while chunk := content.read(CHUNK):
                        stream.write(chunk)
                if sha256_of(path) == file.sha256:
                    del wanted[file.name]
    if wanted:
        raise DownloadError(f"{archive.name} does not hold the published {', '.join(wanted)}")


@contextmanager
def _quiet(logger: Any) -> Iterator[None]:
    """Without pooch's own lines: what goes wrong is told in one."""
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _bar(file: DataFile) -> Iterator[Any]:
    """A bar on stderr as pooch wants one, or False where nobody watches."""
    if not sys.stderr.isatty():
        yield False
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as live:
        yield _Bar(live, file)


class _Bar:
    """What pooch calls while bytes come in."""

    def __init__(self, live: Any, file: DataFile) -> None:
        self.total = file.size  # pooch writes here what the server says
        self._live = live
        self._task = live.add_task(file.name, total=file.size)

    def update(self, size: int) -> None:
        """So many bytes more."""
        self._live.advance(self._task, size)

    def reset(self) -> None:
        """From the start: pooch does so before it fills the bar at the end."""
        self._live.reset(self._task)

    def close(self) -> None:
        """The file is complete; the bar goes with its surroundings."""
