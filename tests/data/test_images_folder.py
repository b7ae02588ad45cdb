"""A folder of images by class: order, shape, colours, a batch at a time, and files that cannot be read."""

from __future__ import annotations

import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tacit.data.images import ImageFolder
from tacit.errors import CallError, RunError

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def paint(path: Path, colour: tuple[int, ...], size=(9, 6), mode="RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour[:3]).convert(mode).save(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    paint(tmp_path / "002.red" / "b.png", RED)
    paint(tmp_path / "002.red" / "a.png", GREEN)
    paint(tmp_path / "001.blue" / "0.jpg", BLUE, size=(40, 70))
    paint(tmp_path / "001.blue" / ".hidden.png", RED)
    paint(tmp_path / ".trash" / "x.png", RED)
    (tmp_path / "readme.txt").write_text("not in a class")
    (tmp_path / "002.red" / "nested").mkdir()
    return tmp_path


def test_classes_and_images_are_in_the_order_of_their_names(root):
    folder = ImageFolder(root, size=5)
    assert folder.classes == ("001.blue", "002.red")
    assert folder.y.tolist() == [0, 1, 1]
    assert (len(folder), folder.skipped, folder.top, folder.name) == (3, (), 255, root.name)
    (x, y), (last, one) = folder.batches(2)
    assert (x.shape, last.shape, x.dtype) == ((2, 5, 5, 3), (1, 5, 5, 3), np.uint8)
    assert (y.tolist(), one.tolist()) == ([0, 1], [1])
    assert np.abs(x[0].astype(int) - BLUE).max() <= 2  # JPEG
    assert (x[1] == GREEN).all()
    assert (last[0] == RED).all()


@pytest.mark.parametrize("tall", [False, True])
def test_the_shorter_side_is_resized_and_the_middle_is_kept(tall, tmp_path):
    # thirds of red, green and blue: at half the size, the middle square is green all over
    wide = np.zeros((20, 60, 3), np.uint8)
    for third, colour in enumerate((RED, GREEN, BLUE)):
        wide[:, 20 * third : 20 * third + 20] = colour
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.fromarray(wide.transpose(1, 0, 2) if tall else wide).save(tmp_path / name / "x.png")
    ((x, _),) = ImageFolder(tmp_path, size=10).batches(2)
    assert (x[:, 2:-2, 2:-2] == GREEN).all()
    assert np.abs(x.astype(int) - GREEN).max() < 40  # the kernel reaches a little across the edge


@pytest.mark.parametrize(("shape", "size"), [((60, 100), 30), ((90, 60), 24), ((8, 5000), 20)])
def test_pixels_are_those_of_resizing_first_and_cutting_then(shape, size, tmp_path):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        image.save(tmp_path / name / "x.png")
    ((x, _),) = ImageFolder(tmp_path, size).batches(2)
    # sizes at which the middle begins at a whole pixel
    width, height = (side * size // min(shape) for side in image.size)
    left, upper = (width - size) // 2, (height - size) // 2
    resized = image.resize((width, height), Image.Resampling.BICUBIC)
    cut = resized.crop((left, upper, left + size, upper + size))
    assert np.array_equal(x[0], np.asarray(cut))


def test_a_square_of_the_right_size_is_kept_to_the_bit(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (7, 7, 3), np.uint8)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.fromarray(pixels).save(tmp_path / name / "x.png")
    ((x, _),) = ImageFolder(tmp_path, size=7).batches(2)
    assert np.array_equal(x[0], pixels)


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGBA", "LA", "CMYK"])
def test_every_mode_becomes_rgb(mode, tmp_path):
    suffix = "jpg" if mode == "CMYK" else "png"
    for name, grey in (("a", 0), ("b", 255)):
        paint(tmp_path / name / f"x.{suffix}", (grey, grey, grey), mode=mode)
    ((x, _),) = ImageFolder(tmp_path, size=4).batches(2)
    assert (x[0] < 3).all()
    assert (x[1] > 252).all()


def test_a_palette_with_transparency_is_read(tmp_path):
    for name in ("a", "b"):
        paint(tmp_path / name / "x.png", RED)
        image = Image.open(tmp_path / name / "x.png").convert("P")
        image.save(tmp_path / name / "x.png", transparency=bytes(range(256)))
    ((x, _),) = ImageFolder(tmp_path, size=4).batches(2)
    assert (x == RED).all()


def test_unreadable_files_are_counted_named_and_skipped_when_asked(root):
    whole = (root / "001.blue" / "0.jpg").read_bytes()
    (root / "001.blue" / "1.jpg").write_bytes(whole[:-30])
    (root / "002.red" / "RENAME2").write_text("a script that was left behind")
    (root / "002.red" / "c.png").write_bytes(b"")
    deep = np.full((4, 4), 40_000, np.uint16)
    Image.fromarray(deep).save(root / "002.red" / "d.png")
    with pytest.raises(RunError) as told:
        ImageFolder(root, size=5)
    message = str(told.value)
    for words in (
        "4 files of 7 cannot be read: ",
        f"{root / '001.blue' / '1.jpg'} (image file is truncated",
        f"{root / '002.red' / 'RENAME2'} (no image)",
        f"{root / '002.red' / 'c.png'} (no image) and 1 more",
        "skip_unreadable=True",
    ):
        assert words in message
    folder = ImageFolder(root, size=5, skip_unreadable=True)
    assert [path.name for path in folder.skipped] == ["1.jpg", "RENAME2", "c.png", "d.png"]
    assert (len(folder), folder.y.tolist()) == (3, [0, 1, 1])
    assert sum(len(x) for x, _ in folder.batches(2)) == 3
    for path in folder.skipped:
        path.unlink()
    assert ImageFolder(root, size=5).fingerprint() == folder.fingerprint()


def test_a_file_that_changes_later_is_told(root):
    folder = ImageFolder(root, size=5)
    (root / "002.red" / "b.png").unlink()
    with pytest.raises(RunError, match=r"b\.png has changed and cannot be read"):
        list(folder.batches(2))


def test_the_fingerprint_is_of_the_content(root, tmp_path_factory):
    mark = ImageFolder(root, size=5).fingerprint()
    copy = tmp_path_factory.mktemp("elsewhere") / "copy"
    shutil.copytree(root, copy)
    assert ImageFolder(copy, size=5).fingerprint() == mark
    assert ImageFolder(root, size=6).fingerprint() != mark
    paint(copy / "002.red" / "b.png", BLUE)
    changed = ImageFolder(copy, size=5).fingerprint()
    assert changed != mark
    (root / "001.blue").rename(root / "001.azure")
    assert ImageFolder(root, size=5).fingerprint() not in (mark, changed)


def test_a_set_larger_than_the_memory_is_streamed(tmp_path):
    for name in ("a", "b"):
        for number in range(20):
            paint(tmp_path / name / f"{number:02}.png", RED, size=(64, 64))
    tracemalloc.start()
    try:
        folder = ImageFolder(tmp_path, size=256)
        total = sum(int(x.size) for x, _ in folder.batches(2))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert total == 40 * 256 * 256 * 3
    # two batches may be alive at once, besides copies of an image on the way; the set is 20 batches
    assert peak < 5 * (2 * 256 * 256 * 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda root: ImageFolder(root / "absent", 5), "there is no folder .*absent"),
        (lambda root: ImageFolder(root, 5), "holds no subfolder: at least two"),
        (lambda root: ImageFolder(root, 0), "size=0: images have a side of at least 1"),
    ],
)
def test_a_wrong_call_is_told(make, words, tmp_path):
    with pytest.raises(CallError, match=words):
        make(tmp_path)


def test_one_class_or_an_empty_class_is_told(tmp_path):
    paint(tmp_path / "only" / "x.png", RED)
    with pytest.raises(CallError, match=r"one class only \(only\)"):
        ImageFolder(tmp_path, 5)
    (tmp_path / "second").mkdir()
    with pytest.raises(CallError, match="second holds no image that can be read"):
        ImageFolder(tmp_path, 5)
    (tmp_path / "second" / "notes.txt").write_text("none")
    with pytest.raises(CallError, match="second holds no image that can be read"):
        ImageFolder(tmp_path, 5, skip_unreadable=True)
    with pytest.raises(RunError, match="1 file of 2 cannot be read"):
        ImageFolder(tmp_path, 5)
    paint(tmp_path / "second" / "y.png", RED)
    batches = ImageFolder(tmp_path, 5, skip_unreadable=True).batches(-1)
    with pytest.raises(CallError, match="batches of size -1"):
        next(batches)
