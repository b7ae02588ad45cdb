"""Features of a set of images, a batch at a time: only the features stay in memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from tacit.base.cache import cache_folder
from tacit.base.device import choose_device, full_float32
from tacit.data.features.cache import FeatureCache
from tacit.data.features.extractor import WHITE, Extractor, Source
from tacit.data.images import Features
from tacit.errors import CallError, RunError

PART = 1000  # images: what an interruption can cost, and no more files than needed


def features_of(
    source: Source,
    extractor: Extractor,
    *,
    device: str = "cpu",
    batch: int = 64,
    cache: bool | str | Path = True,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Features:
    """The features of all images, float32 (n, d), with the labels and classes of the source.

    They are kept by content: in the user's cache, in the folder `cache`, or not at all (False). The key
    is a hash of the images, the extractor's identity and n; batch size and device do not enter it, since
    they change rounding only. An extraction that was interrupted goes on where its last thousand ended.

    `tell` gets a line about each cache file that was not trusted, `progress` (done, n) after each batch.
    The module is used in eval mode on the device, without gradients, and left as it was found.
    """
    n = len(source)
    if n == 0:
        raise CallError("the source has no images")
    if batch < 1:
        raise CallError(f"batch={batch}: take at least 1 image at a time")
    if len(source.y) != n:
        raise CallError(f"the source has {n} images and {len(source.y)} labels: one label an image")
    tell = tell or _nothing
    kept = _place(source, extractor, cache, tell)
    x = kept.whole() if kept else None
    if x is None:
        x = _extracted(source, extractor, known_device(device), batch, kept, progress or _nothing)
        if kept:
            kept.keep_whole(x)
    return Features(x, torch.tensor(np.asarray(source.y), dtype=torch.int64), tuple(source.classes))


def known_device(device: str) -> torch.device:
    """The torch device of that name, if this machine has it."""
    try:
        known = torch.device(device)
    except RuntimeError as error:
        raise CallError(f"device={device!r} is none that torch knows: take cpu or cuda") from error
    if known.type == "cuda":
        choose_device("cuda")
    return known


def _nothing(*_: object) -> None:
    """Where nobody listens."""


def _place(
    source: Source, extractor: Extractor, cache: bool | str | Path, tell: Callable[[str], None]
) -> FeatureCache | None:
    """Where these features are kept, if they are."""
    if cache is False:
        return None
    if not extractor.identity:
        tell(
            f"features of {extractor.name!r} are not kept: it uses something that cannot be hashed (say, an open "
            "file), so that an old copy could not be told from a new one; Extractor(..., identity=TEXT) names it"
        )
        return None
    folder = cache_folder() / "features" if cache is True else Path(cache)
    return FeatureCache.of(folder, (source.fingerprint(), extractor.identity), len(source), tell)


def _extracted(
    source: Source,
    extractor: Extractor,
    device: torch.device,
    batch: int,
    kept: FeatureCache | None,
    progress: Callable[[int, int], None],
) -> Float[Tensor, "n d"]:
    """Features of all images; those of an interrupted extraction are taken over, finished parts are kept."""
    n = len(source)
    x: Tensor | None = None
    begun = kept.begun() if kept else None
    first = done = 0 if begun is None else len(begun)  # rows from `first` on are in no part yet
    if begun is not None:
        x = torch.empty(n, begun.shape[1])
        x[:done] = begun
        progress(done, n)
    with _frozen(extractor.module, device):
        for start, images in _from(source.batches(batch), done):
            if start + len(images) > n:
                raise RunError(f"the source has more images than the {n} it states")
            out = _finite(_features(extractor, images, start, source, device), start, extractor)
            if x is None:
                x = torch.empty(n, out.shape[1])
            x[start : start + len(out)] = out
            done = start + len(out)
            progress(done, n)
            if kept and done - first >= PART and done < n:
                kept.keep_part(first, x[first:done])
                first = done
    if x is None or done < n:
        raise RunError(f"the source states {n} images and gave {done}")
    return x


def _from(
    batches: Iterator[tuple[np.ndarray, np.ndarray]], done: int
) -> Iterator[tuple[int, np.ndarray]]:
    """The batches after the first `done` images, each with the number of its first image."""
    at = 0
    for images, _labels in batches:
        start, at = max(at, done), at + len(images)
        if at > done:
            yield start, images[len(images) - (at - start) :]


def _features(
    extractor: Extractor, images: np.ndarray, start: int, source: Source, device: torch.device
) -> Float[Tensor, "b d"]:
    """The features of a batch."""
    if images.ndim != 4 or images.dtype != np.uint8:
        raise CallError(
            f"image {start} comes in a batch of {images.dtype} {images.shape}; a source gives uint8 "
            "(images, height, width, channels)"
        )
    # here and not around the loop: what is made in inference mode can never be trained on, and x may be
    with torch.inference_mode():
        # torch.tensor copies: from_numpy warns of arrays that cannot be written to
        return extractor(torch.tensor(images, device=device), getattr(source, "top", WHITE)).cpu()


def _finite(x: Float[Tensor, "b d"], start: int, extractor: Extractor) -> Float[Tensor, "b d"]:
    """The features, unless one of them is NaN or infinite."""
    bad = ~x.isfinite().all(1)
    if bad.any():
        number = start + int(bad.nonzero()[0])
        raise RunError(
            f"extractor {extractor.name!r} gives NaN or infinity for image {number} (counted from 0): look at "
            "that image, or at the extractor's weights and transform"
        )
    return x


@contextmanager
def _frozen(module: object, device: torch.device) -> Iterator[None]:
    """Convolutions in full float32; a torch module in eval mode on the device, and back after."""
    with full_float32():
        if not isinstance(module, nn.Module):
            yield
            return
        modes = {part: part.training for part in module.modules()}
        home = next((tensor.device for tensor in module.state_dict().values()), device)
        try:
            module.eval().to(device)
            yield
        finally:
            module.to(home)
            for part, training in modes.items():
                part.training = training
