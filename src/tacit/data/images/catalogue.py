"""The image data sets that tacit knows by name: their files, hashes, and where they are published.

The SHA-256 of every file was computed from copies whose MD5 is the one that the publishers, or the libraries that
download from them, state; the hash of CIFAR-10's archive is the one in general use beside MD5
c32a1d4ab5d03f1284b67883e8d87530, which its page states.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tacit.errors import CallError

Part = Literal["train", "test"]
PARTS: tuple[Part, ...] = ("train", "test")
DIGITS = tuple("0123456789")
IDX = (
    *("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    *("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
)


@dataclass(frozen=True)
class DataFile:
    """A published file: its name, its size in bytes, and the SHA-256 of its content."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Dataset:
    """A published set of images.

    `folder`: where its files lie, under $TACIT_DATA or in the cache; `files`: those of each part; `archive`: the
    one published file that all of them come in, where they do; `sources`: the addresses that files or archive are
    under, the publisher's first. A set without files is bundled with a library.
    """

    name: str
    folder: str
    shape: tuple[int, int, int]
    counts: Mapping[Part, int]
    classes: tuple[str, ...]
    files: Mapping[Part, tuple[DataFile, ...]]
    sources: tuple[str, ...]
    publisher: str
    licence: str
    citation: str
    archive: DataFile | None = None

    @property
    def all_files(self) -> tuple[DataFile, ...]:
        """The files of both parts."""
        return tuple(file for part in PARTS for file in self.files.get(part, ()))

    @property
    def download_size(self) -> int:
        """Bytes that a complete download fetches."""
        return self.archive.size if self.archive else sum(file.size for file in self.all_files)


def find_dataset(name: str) -> Dataset:
    """The data set of that name; otherwise a `CallError` that says which names are near."""
    if name in DATASETS:
        return DATASETS[name]
    if Path(name).is_dir():
        raise CallError(f"{name} is a folder: ImageFolder({name!r}, size=224) reads its images")
    near = difflib.get_close_matches(name.lower(), DATASETS, n=2)
    hint = f"near: {', '.join(near)}; " if near else ""
    raise CallError(f"there is no data set {name!r}; {hint}known: {', '.join(DATASETS)}")


def known_part(part: str) -> Part:
    """`train` or `test`; otherwise a `CallError`."""
    for known in PARTS:
        if part == known:
            return known
    raise CallError(f"part {part!r} is none of {', '.join(PARTS)}")


def _idx_files(*rows: tuple[int, str]) -> dict[Part, tuple[DataFile, ...]]:
    """Sizes and hashes of images and labels of the training set, then of the test set."""
    files = [DataFile(name, *row) for name, row in zip(IDX, rows, strict=True)]
    return {"train": tuple(files[:2]), "test": tuple(files[2:])}


def _cifar_files(*hashes: str) -> dict[Part, tuple[DataFile, ...]]:
    """The batches of the training set, then that of the test set."""
    size = 10_000 * 3073  # images, and bytes of each: a label and three planes of 32 x 32
    train = [DataFile(f"data_batch_{i}.bin", size, known) for i, known in enumerate(hashes[:-1], 1)]
    return {"train": tuple(train), "test": (DataFile("test_batch.bin", size, hashes[-1]),)}


DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="digits",
            folder="",
            shape=(8, 8, 1),
            counts={"train": 1198, "test": 599},
            classes=DIGITS,
            files={},
            sources=(),
            publisher="UCI Machine Learning Repository, through scikit-learn",
            licence="CC BY 4.0",
            citation="Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998",
        ),
        Dataset(
            name="mnist",
            folder="mnist",
            shape=(28, 28, 1),
            counts={"train": 60_000, "test": 10_000},
            classes=DIGITS,
            files=_idx_files(
                (9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
                (28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
                (1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
                (4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
            ),
            sources=(
                "https://yann.lecun.com/exdb/mnist/",
                "https://ossci-datasets.s3.amazonaws.com/mnist/",
                "https://storage.googleapis.com/cvdf-datasets/mnist/",
            ),
            publisher="Y. LeCun, C. Cortes and C. J. C. Burges",
            licence="not stated by its page; often given as CC BY-SA 3.0",
            citation="LeCun, Bottou, Bengio and Haffner, Gradient-based learning applied to document "
            "recognition, Proceedings of the IEEE 86(11), 1998",
        ),
        Dataset(
            name="fashion-mnist",
            folder="fashion-mnist",
            shape=(28, 28, 1),
            counts={"train": 60_000, "test": 10_000},
            classes=(
                *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
                *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
            ),
            files=_idx_files(
                (26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
                (29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
                (4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
                (5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
            ),
            sources=(
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            ),
            publisher="Zalando Research",
            licence="MIT",
            citation="Xiao, Rasul and Vollgraf, Fashion-MNIST, arXiv:1708.07747, 2017",
        ),
        Dataset(
            name="cifar10",
            folder="cifar-10-batches-bin",
            shape=(32, 32, 3),
            counts={"train": 50_000, "test": 10_000},
            classes=(
                *("airplane", "automobile", "bird", "cat", "deer"),
                *("dog", "frog", "horse", "ship", "truck"),
            ),
            files=_cifar_files(
                "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
                "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
                "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
                "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
                "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
                "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
            ),
            archive=DataFile(
                "cifar-10-binary.tar.gz",
                170_052_171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
            sources=(
                "https://www.cs.toronto.edu/~kriz/",
                "https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/",
            ),
            publisher="A. Krizhevsky, University of Toronto",
            licence="not stated by its page, which asks for the citation",
            citation="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
        ),
    )
}
