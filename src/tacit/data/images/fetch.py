"""Getting the files of a data set: found here, or downloaded into the user's cache."""

import warnings
from collections.abc import Sequence
from pathlib import Path

from tacit.base.cache import cache_folder, stated_folder
from tacit.data.images.catalogue import DataFile, Dataset, Part
from tacit.data.images.download import DownloadError, download
from tacit.data.images.places import (
    VARIABLE,
    check,
    copies_of,
    folders_of,
    is_whole,
    look,
)
from tacit.errors import RunError


def gather(dataset: Dataset, part: Part) -> list[Path]:
    """The files of the part, each checked; those that are nowhere are downloaded first.

    A damaged copy under $TACIT_DATA is passed over, with a warning, where the cache has a whole one.
    """
    files = dataset.files[part]
    missing = [file for file in files if look(dataset, file) is None]
    if missing:
        _download(dataset, missing)
    paths = [look(dataset, file) or cache_folder() / dataset.folder / file.name for file in files]
    for path, file in zip(paths, files, strict=True):
        check(path, file, dataset)
        if (first := copies_of(dataset, file)[0]) != path:
            told = f"{first} is damaged and {path} is used: replace or remove the damaged file"
            warnings.warn(told, stacklevel=3)
    return paths


def fetch(dataset: Dataset) -> bool:
    """Make all files of the set be here; whether anything had to be downloaded.

    A damaged file in the cache is replaced; one under $TACIT_DATA is the user's, and is told unless the cache has
    a whole copy.
    """
    wanted = []
    for file in dataset.all_files:
        path = look(dataset, file)
        if path is None or (cache_folder() in path.parents and not is_whole(path, file)):
            wanted.append(file)
        else:
            check(path, file, dataset)
    if wanted:
        _download(dataset, wanted)
    return bool(wanted)


def _download(dataset: Dataset, files: Sequence[DataFile]) -> None:
    """Put the files into the cache; otherwise say what is missing, why, and how to do without the network."""
    place = cache_folder()
    try:
        download(dataset, files, place)
    except DownloadError as error:
        given = stated_folder(VARIABLE)
        unset = ""
        if given is not None and not given.is_dir():
            unset = f" (${VARIABLE} is {given}, which is no folder)"
        elif given is not None:
            place = given
        addresses = " or ".join(dataset.sources)
        if dataset.archive:
            how = f"unpack {dataset.archive.name} from {addresses} into {place}"
        else:
            how = f"put them, from {addresses}, into {place / dataset.folder}"
        raise RunError(
            f"{dataset.name} is not here and could not be downloaded ({error}): "
            f"{', '.join(file.name for file in files)} not whole in "
            f"{' or '.join(map(str, folders_of(dataset)))}{unset}; {how}; or do without: exhibits take "
            "--set dataset=digits"
        ) from None
    except OSError as error:
        raise RunError(
            f"{error.filename or place} cannot be written ({error.strerror or error}): make room there, or point "
            "XDG_CACHE_HOME at another folder"
        ) from None
