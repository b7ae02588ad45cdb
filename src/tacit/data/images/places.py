"""Where files of images are looked for: $TACIT_DATA, then the user's cache; and whether they are whole."""

from functools import cache
from pathlib import Path

from tacit.base.cache import cache_folder, stated_folder
from tacit.base.files import digest
from tacit.data.images.catalogue import DataFile, Dataset, find_dataset
from tacit.errors import RunError

VARIABLE = "TACIT_DATA"


def folders_of(dataset: Dataset) -> list[Path]:
    """The folders in which the files of the set may lie, in the order in which they are looked at."""
    places = (
        [cache_folder()] if (given := stated_folder(VARIABLE)) is None else [given, cache_folder()]
    )
    return [place / dataset.folder for place in places]


def look(dataset: Dataset, file: DataFile) -> Path | None:
    """The first whole copy of the file in these folders; where none is whole the first, where none is, None."""
    copies = copies_of(dataset, file)
    if len(copies) < 2:
        return copies[0] if copies else None
    return next((path for path in copies if is_whole(path, file)), copies[0])


def copies_of(dataset: Dataset, file: DataFile) -> list[Path]:
    """The copies of the file in these folders, whole or not."""
    found = []
    for folder in folders_of(dataset):
        try:
            if (folder / file.name).is_file():
                found.append(folder / file.name)
        except OSError as error:
            raise _unreadable(folder, error) from None
    return found


def is_whole(path: Path, file: DataFile) -> bool:
    """Whether the file has the published content."""
    return sha256_of(path) == file.sha256


def check(path: Path, file: DataFile, dataset: Dataset) -> None:
    """A `RunError` if the file is not what was published: which, the two hashes, and the remedy."""
    if is_whole(path, file):
        return
    fetch = f"`tacit data fetch {dataset.name}`"
    if cache_folder() in path.parents:
        remedy = f"{fetch} downloads it anew"
    else:
        remedy = f"replace or remove that file ({fetch} does not touch ${VARIABLE})"
    raise RunError(
        f"{path} is damaged or truncated: {path.stat().st_size:,} bytes with SHA-256 {sha256_of(path)}, expected "
        f"{file.size:,} bytes with {file.sha256}: {remedy}"
    )


def sha256_of(path: Path) -> str:
    """The SHA-256 of the file, computed once a process as long as the file does not change."""
    try:
        about = path.stat()
        return _sha256(path, about.st_size, about.st_mtime_ns)
    except OSError as error:
        raise _unreadable(path, error) from None


@cache
def _sha256(path: Path, size: int, mtime: int) -> str:  # noqa: ARG001
    """The hash of the content that the file had at that size and time."""
    return digest(path)


def present(name: str) -> bool:
    """Whether the set can be loaded without a download: all its files are here, whole."""
    dataset = find_dataset(name)
    found = [(look(dataset, file), file) for file in dataset.all_files]
    return all(path is not None and is_whole(path, file) for path, file in found)


def _unreadable(path: Path, error: OSError) -> RunError:
    return RunError(
        f"{path} cannot be read ({error.strerror or error}): make it readable, or remove it"
    )
