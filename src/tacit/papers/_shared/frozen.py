"""The settings of exhibits on frozen features: which images, which net reads them (without torch)."""

from dataclasses import dataclass

from tacit.papers._shared.checks import check_positive, check_unique


@dataclass(frozen=True)
class Frozen:
    """Images, the frozen net that reads them, and how many are taken, equally many of each class.

    `dataset`: digits, mnist, fashion-mnist or cifar10; several of these joined by a plus (mnist+cifar10), whose
    labels go on from one to the next; or a path (it has a slash or a dot: ./images) to a folder of images by
    class (Caltech-256's layout), to an .npz file with x (n, d) and y (n,), or to a folder with x.npy and y.npy.
    What is one set is split by chance, every class in the proportion train : test. `extractor`:
    pixels, efficientnet-lite0, timm:MODEL or open_clip:MODEL/WEIGHTS (not used for features); `size` is the side
    that it gets images in, its own where none. `train` and `test` are at most so many images.
    `skip_unreadable` leaves out the files of a folder that are no images.
    """

    dataset: str = "cifar10"
    extractor: str = "efficientnet-lite0"
    size: int | None = None
    train: int = 50_000
    test: int = 10_000
    skip_unreadable: bool = False

    def __post_init__(self) -> None:
        for name in ("train", "test"):
            check_positive(name, (getattr(self, name),))
        if self.size is not None:
            check_positive("size", (self.size,))
        if not self.is_path:
            check_unique("dataset", self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The data sets that are taken together, in the order of their labels."""
        return tuple(self.dataset.split("+"))

    @property
    def named(self) -> str:
        """Data and extractor in words; of a path its last part alone."""
        last = self.dataset.rstrip("/").rpartition("/")[2]
        return last if self.is_features else f"{last} by {self.extractor}"

    @property
    def is_path(self) -> bool:
        """Whether the data set is the user's own; no data set has a slash or a dot in its name."""
        return "/" in self.dataset or "\\" in self.dataset or "." in self.dataset

    @property
    def is_features(self) -> bool:
        """Whether it is a file of features."""
        return self.dataset.endswith(".npz")
