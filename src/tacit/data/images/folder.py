"""A folder of images by class, one subfolder each, as Caltech-256 has it (`001.ak47/001_0001.jpg`)."""

import hashlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8
from PIL import Image, UnidentifiedImageError

from tacit.data.images.images import content_hash, known_size
from tacit.errors import CallError, RunError

NAMED = 3  # of the files that cannot be read, the first few
# what pillow raises at files that are no images, are cut short, or lie about their size
BROKEN = (OSError, ValueError, SyntaxError, EOFError, MemoryError, Image.DecompressionBombError)


class ImageFolder:
    """The images of a folder, read a batch at a time: never more than a batch is in memory.

    Each subfolder is a class; classes and images are in the order of their names, and names that begin with a dot
    are passed over, as are folders inside a class. All subfolders count (Caltech-256's `257.clutter` too: move it
    away to leave it out). Every image is converted to RGB, its shorter side is resized to `size` (bicubic), and
    the middle square is cut out.

    Opening the folder decodes every image once, so that files that cannot be read are known before any work is
    done on the others: a `RunError` counts and names them, or, with `skip_unreadable`, they are left out and
    `skipped` has their paths. `fingerprint()` is from the content of the files that was read then.
    """

    top = 255  # white

    def __init__(self, root: str | Path, size: int, skip_unreadable: bool = False) -> None:
        if size < 1:
            raise CallError(f"size={size}: images have a side of at least 1 pixel, as in size=224")
        self.root, self.size = Path(root), size
        self.name = self.root.resolve().name
        self.classes = _class_names(self.root)
        hashed = hashlib.sha256()
        kept: list[Path] = []
        labels: list[int] = []
        broken: list[tuple[Path, str]] = []
        for label, name in enumerate(self.classes):
            before = len(kept)
            for path in _visible(self.root / name, files=True):
                try:
                    content = path.read_bytes()
                    _probe(content)
                except BROKEN as error:
                    broken.append((path, _told(error)))
                    continue
                kept.append(path)
                labels.append(label)
                hashed.update(hashlib.sha256(content).digest())
            if len(kept) == before and (skip_unreadable or not broken):
                raise CallError(
                    f"{self.root / name} holds no image that can be read: put some there, or remove the folder"
                )
        if broken and not skip_unreadable:
            raise _unreadable(broken, len(kept))
        self.skipped: tuple[Path, ...] = tuple(path for path, _ in broken)
        self.y: Int64[np.ndarray, " n"] = np.array(labels, np.int64)
        self._paths = kept
        self._content = hashed.digest()

    def __len__(self) -> int:
        return len(self._paths)

    def batches(
        self, size: int
    ) -> Iterator[tuple[UInt8[np.ndarray, "b S S 3"], Int64[np.ndarray, " b"]]]:
        """The images in order, `size` at a time; the last batch may be smaller."""
        known_size(size)
        for start in range(0, len(self), size):
            paths = self._paths[start : start + size]
            yield np.stack([self._read(path) for path in paths]), self.y[start : start + size]

    def fingerprint(self) -> str:
        """The SHA-256 of the content of the files, their classes, and the size they are brought to."""
        return content_hash(
            (self.classes, self.size), self.y.astype("<i8").tobytes(), self._content
        )

    def _read(self, path: Path) -> UInt8[np.ndarray, "S S 3"]:
        """One image; it could be read when the folder was opened."""
        try:
            return _square(path.read_bytes(), self.size)
        except BROKEN as error:
            raise RunError(
                f"{path} has changed and cannot be read ({_told(error)}): open the folder again"
            ) from None


def _opened(content: bytes) -> Image.Image:
    """The image behind its header; 16 bits or floats a pixel would be cut at 255, and are refused."""
    image = Image.open(BytesIO(content))
    if image.mode.startswith(("I", "F")):
        raise ValueError(f"pixels of type {image.mode}: convert it to 8 bits")
    return image


def _probe(content: bytes) -> None:
    """Decode all of the file, at the lowest resolution that it offers; raises if it cannot be done."""
    with _opened(content) as image:
        image.draft("RGB", (1, 1))
        image.load()


def _square(content: bytes, size: int) -> UInt8[np.ndarray, "S S 3"]:
    """RGB, the shorter side resized to `size`, the middle square of the longer one."""
    with _opened(content) as opened:
        # a palette with transparency has no RGB of its own
        image = opened.convert("RGBA") if "transparency" in opened.info else opened
        image = image.convert("RGB")
    # the same square as after resizing, and a long strip never grows to many times the image
    side = min(image.size)
    left, upper = ((whole - side) / 2 for whole in image.size)
    box = (left, upper, left + side, upper + side)
    return np.asarray(image.resize((size, size), Image.Resampling.BICUBIC, box=box))


def _visible(folder: Path, files: bool) -> list[Path]:
    """The files, or the folders, in a folder, without hidden ones, by name."""
    found = (path for path in folder.iterdir() if not path.name.startswith("."))
    return sorted(path for path in found if (path.is_file() if files else path.is_dir()))


def _class_names(root: Path) -> tuple[str, ...]:
    """The names of the subfolders, at least two."""
    if not root.is_dir():
        raise CallError(
            f"there is no folder {root}: give one that has a subfolder of images for each class"
        )
    names = tuple(path.name for path in _visible(root, files=False))
    if len(names) < 2:
        found = f"one class only ({names[0]})" if names else "no subfolder"
        raise CallError(
            f"{root} holds {found}: at least two are needed, each with the images of a class"
        )
    return names


def _unreadable(broken: list[tuple[Path, str]], readable: int) -> RunError:
    """How many files cannot be read, which, and why."""
    named = ", ".join(f"{path} ({reason})" for path, reason in broken[:NAMED])
    more = f" and {len(broken) - NAMED} more" if len(broken) > NAMED else ""
    files = "1 file" if len(broken) == 1 else f"{len(broken)} files"
    return RunError(
        f"{files} of {readable + len(broken)} cannot be read: {named}{more}; mend or remove them, or leave them "
        "out with skip_unreadable=True (exhibits: --set skip_unreadable=true)"
    )


def _told(error: Exception) -> str:
    """Why a file cannot be read, in a few words."""
    if isinstance(error, UnidentifiedImageError):
        return "no image"
    return (str(error) or type(error).__name__).splitlines()[0]
