"""Data sets by name: the formats against bytes written by hand, the digits against scikit-learn, known facts."""

from __future__ import annotations

import gzip
import hashlib
import struct

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_digits

from image_server import cifar_bytes, idx_bytes, tiny_images
from tacit.data.images import DATASETS, Images, load_images, places, present
from tacit.data.images.cifar import read_cifar
from tacit.data.images.idx import read_idx
from tacit.errors import CallError, RunError

# of the published sets: images of each class, mean and standard deviation of a channel's pixels in [0, 1]
FACTS = {
    ("mnist", "train"): (
        [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        [0.1307],
        [0.3081],
    ),
    ("mnist", "test"): ([980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009], None, None),
    ("fashion-mnist", "train"): ([6000] * 10, [0.2860], [0.3530]),
    ("cifar10", "train"): ([5000] * 10, [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
    ("cifar10", "test"): ([1000] * 10, None, None),
}


def example(n: int = 7) -> Images:
    x, y = tiny_images(3, (n, 2, 4, 3))
    return Images(x, y.astype(np.int64), tuple("abcdefghij"), 255, "tiny")


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)))
def test_idx_files_are_read_as_they_were_written(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("idx") / "some.gz"
    path.write_bytes(idx_bytes(array))
    assert np.array_equal(read_idx(path), array)


GOOD = idx_bytes(np.arange(24).reshape(2, 3, 4))
HEADER = struct.pack(">BBBBII", 0, 0, 8, 2, 3, 4)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (GOOD[:-12], "is damaged or truncated"),
        (GOOD[:30], "is damaged or truncated"),
        (GOOD[:20] + bytes([GOOD[20] ^ 255]) + GOOD[21:], "is damaged or truncated"),
        (b"", "is damaged or truncated"),
        (b"no gzip at all", "is damaged or truncated"),
        (gzip.compress(HEADER[:2]), "is damaged or truncated"),
        (gzip.compress(HEADER[:9]), "is damaged or truncated"),
        (gzip.compress(HEADER + bytes(11)), "is damaged or truncated"),
        (gzip.compress(HEADER + bytes(13)), "more than the"),
        (gzip.compress(b"\0\0\x0d\x01" + bytes(8)), "is no idx file of bytes"),
        (gzip.compress(struct.pack(">BBBBIII", 0, 0, 8, 3, *[2**32 - 1] * 3)), "is damaged or"),
    ],
    ids=range(11),  # gzip writes the time: as names, the bytes would differ from run to run
)
def test_a_damaged_idx_file_is_told(content, words, tmp_path):
    path = tmp_path / "some.gz"
    path.write_bytes(content)
    with pytest.raises(RunError, match=words) as told:
        read_idx(path)
    assert str(path) in str(told.value)


def test_cifar_batches_are_read_as_they_were_written(tmp_path):
    parts = [tiny_images(seed, (n, 32, 32, 3)) for seed, n in ((0, 2), (1, 3))]
    paths = [tmp_path / "one.bin", tmp_path / "two.bin"]
    for path, part in zip(paths, parts, strict=True):
        path.write_bytes(cifar_bytes(*part))
    x, y = read_cifar(paths)
    assert np.array_equal(x, np.concatenate([part[0] for part in parts]))
    assert np.array_equal(y, np.concatenate([part[1] for part in parts]))


@pytest.mark.parametrize("size", [0, 3072, 3073 * 2 - 1, 3073 + 1])
def test_a_cifar_batch_that_ends_inside_a_record_is_told(size, tmp_path):
    (tmp_path / "one.bin").write_bytes(bytes(size))
    with pytest.raises(RunError, match=f"{size:,} bytes are no whole number of records of 3,073"):
        read_cifar([tmp_path / "one.bin"])


def test_digits_are_scikit_learns_every_third_a_test():
    bunch = load_digits()
    train, test = load_images("digits"), load_images("digits", "test")
    assert (len(train), len(test), train.top, train.x.shape[1:]) == (1198, 599, 16, (8, 8, 1))
    assert np.array_equal(test.x[..., 0], bunch.images[2::3])
    assert np.array_equal(test.y, bunch.target[2::3])
    rest = np.delete(np.arange(1797), np.s_[2::3])
    assert np.array_equal(train.pixels().double().numpy(), bunch.data[rest] / 16)
    assert np.array_equal(train.y, bunch.target[rest])
    for part in (train, test):
        assert len(part) == DATASETS["digits"].counts["train" if part is train else "test"]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        pytest.param(*key, marks=[] if key[0] == "mnist" else pytest.mark.slow, id="-".join(key))
        for key in FACTS
    ],
)
def test_published_sets_are_what_is_known_of_them(name, part):
    if not present(name):
        pytest.skip(f"{name} is not here: `tacit data fetch {name}`, or set TACIT_DATA")
    images = load_images(name, part)
    counts, mean, std = FACTS[name, part]
    assert np.bincount(images.y).tolist() == counts
    assert images.x.shape == (DATASETS[name].counts[part], *DATASETS[name].shape)
    if mean is not None:
        channels = images.x.reshape(-1, images.x.shape[-1])
        # sums of whole numbers, exact
        total = channels.sum(0, dtype=np.int64)
        squares = sum(
            np.square(block, dtype=np.int64).sum(0) for block in np.array_split(channels, 50)
        )
        found = total / len(channels) / 255
        assert found == pytest.approx(mean, abs=6e-5)
        spread = np.sqrt(squares / len(channels) / 255**2 - found**2)
        assert spread == pytest.approx(std, abs=6e-5)


def test_the_hashes_of_the_catalogue_are_those_of_torchvision_and_the_publishers():
    """Sizes and MD5s known elsewhere stand beside our SHA-256: the files here have both."""
    known = {
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    }
    if not present("mnist"):
        pytest.skip("mnist is not here: `tacit data fetch mnist`, or set TACIT_DATA")
    for file in DATASETS["mnist"].all_files:
        content = places.look(DATASETS["mnist"], file).read_bytes()
        assert len(content) == file.size
        assert hashlib.md5(content).hexdigest() == known[file.name]


@given(st.integers(0, 9), st.integers(1, 12))
def test_batches_are_all_images_in_order(n, size):
    images = example(n)
    batches = list(images.batches(size))
    assert all(len(x) == len(y) == size for x, y in batches[:-1])
    assert np.array_equal(
        np.concatenate([np.empty((0, 2, 4, 3)), *(x for x, _ in batches)]), images.x
    )
    assert [label for _, y in batches for label in y] == images.y.tolist()


def test_pixels_are_floats_in_the_unit_box():
    images = example()
    whole = images.pixels()
    assert whole.dtype == torch.float32
    assert whole.shape == (7, 24)
    exact = images.x.reshape(7, -1).astype(np.float64) / 255
    assert np.array_equal(whole.numpy(), exact.astype(np.float32))
    for rows in (slice(2, 5), [2, 3, 4], np.array([2, 3, 4]), torch.tensor([2, 3, 4])):
        assert torch.equal(images.pixels(rows), whole[2:5])
    assert torch.equal(images.pixels(images.y > 4), whole[torch.from_numpy(images.y > 4)])


def test_the_fingerprint_is_of_the_content():
    images = example()
    mark = images.fingerprint()
    assert len(mark) == 64
    assert mark == Images(images.x.copy(), images.y, images.classes, 255, "other").fingerprint()
    x, y = images.x.copy(), images.y.copy()
    x[0, 0, 0, 0] ^= 1
    y[0] = (y[0] + 1) % 10
    others = [
        Images(x, images.y, images.classes, 255, "tiny"),
        Images(images.x, y, images.classes, 255, "tiny"),
        Images(images.x.reshape(7, 4, 2, 3), images.y, images.classes, 255, "tiny"),
        Images(images.x, images.y, tuple("abcdefghiz"), 255, "tiny"),
        Images(images.x, images.y, images.classes, 254, "tiny"),
    ]
    assert len({mark, *(other.fingerprint() for other in others)}) == 6


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: load_images("minst"), "no data set 'minst'; near: mnist"),
        (lambda: load_images("MNIST"), "near: mnist"),
        (lambda: load_images("zebra"), "known: digits, mnist, fashion-mnist, cifar10"),
        (lambda: load_images("/"), "is a folder: ImageFolder"),
        (lambda: load_images("digits", "valid"), "part 'valid' is none of train, test"),
        (lambda: next(example().batches(0)), "batches of size 0"),
        (
            lambda: Images(example().x, example(6).y, tuple("abcdefghij"), 255, "mine"),
            "mine: 7 images and 6 labels",
        ),
        (
            lambda: Images(example().x, np.full(7, 2), ("a", "b"), 255, "mine"),
            r"image 0 has the label 2: labels of 2 classes are 0\.\.1",
        ),
    ],
)
def test_a_wrong_call_is_told(call, words):
    with pytest.raises(CallError, match=words):
        call()
