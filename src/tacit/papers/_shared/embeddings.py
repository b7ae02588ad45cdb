"""What a frozen net makes of the images of an exhibit: a training and a test set of features.

Rows are taken class after class (one image of each, a second one of each, ...), by chance within a class: any
first rows are as balanced as the data allow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tacit.data.features import Extractor, Source, features_of, named_extractor
from tacit.data.images import Features, ImageFolder, Images, load_features, load_images
from tacit.data.images.catalogue import PARTS, Part
from tacit.errors import CallError
from tacit.lab import Bench
from tacit.papers._shared.frozen import Frozen

Rows = Int64[np.ndarray, " m"]
WHITE = 255


@dataclass(frozen=True)
class Embeddings:
    """Features of the training and of the test images, in balanced order."""

    train: Features
    test: Features

    @property
    def classes(self) -> int:
        """How many there are."""
        return len(self.train.classes)


@dataclass(frozen=True, eq=False)
class Chosen:
    """Some rows of a source, ascending, as a source: only their images reach the extractor."""

    source: Source
    rows: Rows

    @property
    def y(self) -> np.ndarray:
        """Their labels."""
        return np.asarray(self.source.y)[self.rows]

    @property
    def classes(self) -> tuple[str, ...]:
        """All of the source's."""
        return self.source.classes

    @property
    def top(self) -> int:
        """White, as in the source."""
        return int(getattr(self.source, "top", WHITE))

    def __len__(self) -> int:
        return len(self.rows)

    def batches(self, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Full batches, however thinly the rows lie in the source."""
        kept: list[tuple[np.ndarray, np.ndarray]] = []
        held = first = 0
        for images, labels in self.source.batches(size):
            start, end = np.searchsorted(self.rows, (first, first + len(images)))
            here = self.rows[start:end] - first
            first += len(images)
            kept.append((images[here], labels[here]))
            held += len(here)
            if held >= size:
                x, y = (np.concatenate(parts) for parts in zip(*kept, strict=True))
                yield x[:size], y[:size]
                kept, held = [(x[size:], y[size:])], held - size
        if held:
            x, y = (np.concatenate(parts) for parts in zip(*kept, strict=True))
            yield x, y

    def fingerprint(self) -> str:
        """Of the source and of the choice."""
        chosen = self.rows.astype("<i8").tobytes()
        return hashlib.sha256(self.source.fingerprint().encode() + chosen).hexdigest()


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of images one after another: the labels of each go on where those of the one before end.

    Their images may differ in size and colour: each set is read by itself, and its features are kept by itself.
    """

    sources: tuple[Images, ...]

    @classmethod
    def of(cls, names: Sequence[str], part: Part) -> Sets:
        """The training or the test parts of the data sets of these names."""
        return cls(tuple(load_images(name, part) for name in names))

    @property
    def classes(self) -> tuple[str, ...]:
        """Of all sets; where there are several, with the name of theirs."""
        if len(self.sources) == 1:
            return self.sources[0].classes
        return tuple(f"{each.name} {kind}" for each in self.sources for kind in each.classes)

    @property
    def y(self) -> Int64[np.ndarray, " n"]:
        """The labels, from 0 on through all sets."""
        first = np.cumsum([0, *(len(each.classes) for each in self.sources)])
        return np.concatenate([each.y + k for each, k in zip(self.sources, first, strict=False)])

    def extracted(self, rows: Rows, extractor: Extractor, bench: Bench) -> Features:
        """The features of these rows of all sets, in their order."""
        first = np.cumsum([0, *(len(each) for each in self.sources)])
        owner = np.searchsorted(first, rows, side="right") - 1
        found, places = [], []
        for index, source in enumerate(self.sources):
            mine = np.flatnonzero(owner == index)
            if len(mine):
                found.append(extracted(source, rows[mine] - first[index], extractor, bench).x)
                places.append(mine)
        widths = sorted({x.shape[1] for x in found})
        if len(widths) > 1:
            names = " and ".join(source.name for source in self.sources)
            counts = " or ".join(map(str, widths))
            raise CallError(
                f"extractor={extractor.name} makes {counts} features of an image, and those of {names} cannot be "
                "joined: take one that makes equally many of each, as efficientnet-lite0 does"
            )
        order = torch.from_numpy(np.argsort(np.concatenate(places)))
        return Features(torch.cat(found)[order], torch.from_numpy(self.y[rows]), self.classes)


def embeddings_of(config: Frozen, bench: Bench) -> Embeddings:
    """The features that a config asks for; the choice of images is the seed's, and the same in every exhibit."""
    stream = bench.generator("images")
    path = Path(config.dataset)
    if config.is_path and not path.exists():
        raise CallError(
            f"dataset={config.dataset}: this path does not exist; give a folder of images by class, an .npz "
            "file, or a folder with x.npy and y.npy"
        )
    if config.is_features or (config.is_path and (path / "x.npy").is_file()):
        whole = load_features(path)
        parts = split(whole.y.numpy(), config.train, config.test, stream)
        return checked(*(taken(whole, rows) for rows in parts))
    extractor = named_extractor(config.extractor, config.size)
    if config.is_path:
        folder = ImageFolder(path, folder_size(config, extractor), config.skip_unreadable)
        if folder.skipped:
            bench.tell(
                f"{len(folder.skipped)} files of {config.dataset} cannot be read and are left out"
            )
        parts = split(folder.y, config.train, config.test, stream)
        return checked(*(extracted(folder, rows, extractor, bench) for rows in parts))
    sets = [Sets.of(config.names, part) for part in PARTS]
    counts = (config.train, config.test)
    chosen = [balanced(s.y, count, stream) for s, count in zip(sets, counts, strict=True)]
    found = zip(sets, chosen, strict=True)
    return checked(*(some.extracted(rows, extractor, bench) for some, rows in found))


def balanced(y: Int64[np.ndarray, " n"], count: int, generator: torch.Generator) -> Rows:
    """At most `count` rows: one of each class in turn, by chance within a class, until they run out."""
    order = torch.randperm(len(y), generator=generator).numpy()
    return order[np.argsort(rank_in_class(y[order]), kind="stable")][:count]


def split(
    y: Int64[np.ndarray, " n"], train: int, test: int, generator: torch.Generator
) -> tuple[Int64[np.ndarray, " a"], Int64[np.ndarray, " b"]]:
    """Two balanced choices without a common row; every class is divided in the proportion train : test."""
    order = torch.randperm(len(y), generator=generator).numpy()
    rank, size = rank_in_class(y[order]), np.bincount(y)[y[order]]
    if size.min() < 2:
        lone = int(y[order][size.argmin()])
        raise CallError(
            f"class {lone} has one image: a training and a test image are needed of each"
        )
    tested = rank < np.clip(np.rint(size * test / (train + test)), 1, size - 1)
    pools = (order[~tested], order[tested])
    first, second = (
        pool[balanced(y[pool], count, generator)]
        for pool, count in zip(pools, (train, test), strict=True)
    )
    return first, second


def rank_in_class(y: Int64[np.ndarray, " n"]) -> Rows:
    """How many rows of the same class come before each."""
    rank = np.empty(len(y), np.int64)
    for label in np.unique(y):
        mine = np.flatnonzero(y == label)
        rank[mine] = np.arange(len(mine))
    return rank


def extracted(source: Source, rows: Rows, extractor: Extractor, bench: Bench) -> Features:
    """The features of these rows, in their order; kept in the user's cache, but for pixels."""
    some = Chosen(source, np.sort(rows))
    with bench.progress.track("images", len(some)) as advance:
        done = 0

        def follow(now: int, _all: int) -> None:
            """One step an image."""
            nonlocal done
            for _ in range(now - done):
                advance()
            done = now

        found = features_of(
            some,
            extractor,
            device=bench.device,
            cache=extractor.name != "pixels",
            tell=bench.tell,
            progress=follow,
        )
    return taken(found, np.argsort(np.argsort(rows)))


def taken(whole: Features, rows: Rows) -> Features:
    """These rows."""
    index = torch.from_numpy(rows)
    return Features(whole.x[index], whole.y[index], whole.classes)


def checked(train: Features, test: Features) -> Embeddings:
    """Every class has a training image."""
    missing = set(range(len(train.classes))) - set(train.y.tolist())
    if missing:
        name = train.classes[min(missing)]
        raise CallError(
            f"{len(train.y)} training images of {len(train.classes)} classes: none is of {name}; "
            f"take more, --set train={4 * len(train.classes)}"
        )
    return Embeddings(train, test)


def folder_size(config: Frozen, extractor: Extractor) -> int:
    """The side of a folder's images: what the extractor takes."""
    side = getattr(extractor.transform, "size", None)
    if side is None:
        raise CallError(
            f"extractor={config.extractor} takes images as they are, and those of a folder differ: --set size=32"
        )
    return int(side)


def class_means(x: Float[Tensor, "n d"], y: Int64[Tensor, " n"]) -> Float[Tensor, "k d"]:
    """The mean feature of each class, float64."""
    sums = torch.zeros(int(y.max()) + 1, x.shape[1], dtype=torch.float64)
    return sums.index_add(0, y, x.double()) / torch.bincount(y).unsqueeze(1)
