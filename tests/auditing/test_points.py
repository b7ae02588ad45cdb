"""Data of an audit: every way to give it, and one clear line for whatever is wrong with it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tacit.attack.norms import known_norm
from tacit.auditing.choices import (
    known_box,
    known_count,
    known_radii,
    named_norm,
    natural_radii,
    within_reach,
)
from tacit.auditing.points import labels_for, read_points
from tacit.errors import CallError

X = np.random.default_rng(0).normal(size=(6, 2, 3))
Y = np.array([0, 1, 2, 0, 1, 2])
GROUP = np.array(["a", "b", "a", "b", "a", "b"])


def saved(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "data.npz", **arrays)
    return folder / "data.npz"


@pytest.mark.parametrize(
    "form",
    [
        lambda folder: saved(folder, x=X, y=Y, group=GROUP),
        lambda folder: str(saved(folder, x=X, y=Y[:, None].astype(float), group=GROUP)),
        lambda folder: {"x": torch.from_numpy(X), "y": Y, "group": GROUP},
        lambda folder: (X, torch.from_numpy(Y)),
        lambda folder: [(X[:4], Y[:4]), (X[4:], Y[4:])],
        lambda folder: (
            (torch.from_numpy(x[None]), torch.tensor([y])) for x, y in zip(X, Y, strict=True)
        ),
        lambda folder: torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), batch_size=4
        ),
    ],
)
def test_data_may_come_in_many_forms(form: Callable[[Path], Any], tmp_path: Path) -> None:
    data = form(tmp_path)
    keyed = isinstance(data, str | Path | dict)
    points = read_points(data, subclass="group" if keyed else None)
    assert torch.equal(points.x, torch.from_numpy(X))
    assert points.y.tolist() == Y.tolist()
    assert (points.subclass.tolist() if keyed else points.subclass) == (
        [0, 1] * 3 if keyed else None
    )


def test_subclasses_may_be_the_third_of_a_tuple() -> None:
    assert read_points((X, Y, Y % 2)).subclass.tolist() == [0, 1, 0, 0, 1, 0]
    assert read_points([(X, Y, Y % 2)]).subclass.tolist() == [0, 1, 0, 0, 1, 0]


def test_a_limit_is_a_choice_that_repeats_and_a_stream_ends_early() -> None:
    one, two = (read_points((X, Y), limit=3) for _ in range(2))
    assert torch.equal(one.x, two.x)
    rows = [X.tolist().index(row) for row in one.x.tolist()]
    assert rows == sorted(rows) != [0, 1, 2]
    assert one.y.tolist() == Y[rows].tolist()
    read = []

    def stream():
        for at in range(6):
            read.append(at)
            yield X[at : at + 1], Y[at : at + 1]

    assert len(read_points(stream(), limit=2).x) == 2
    assert read == [0, 1]
    assert len(read_points((X, Y), limit=99).x) == 6


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        ({"x": X}, "data has no array 'y', only x: x and y are needed"),
        ({"y": Y}, "has no array 'x'"),
        ((X, Y[:5]), "x has 6 points and y 5 labels"),
        ((X[:0], Y[:0]), "x is empty"),
        ((X[:, 0, 0], Y), "x has shape (6,): points are rows"),
        ((X, np.zeros((6, 2))), "y has shape (6, 2): one label a point"),
        ((X, Y + 0.5), "labels are whole numbers"),
        ((X, np.full(6, np.nan)), "labels are whole numbers"),
        ((X, GROUP), "labels are whole numbers"),
        (((255 * np.abs(X)).astype(np.uint8), Y), "x holds integers (uint8)"),
        ((X > 0, Y), "x holds integers (bool)"),
        ((X.astype(complex), Y), "x holds complex128"),
        ((np.where(X > 1, np.nan, X), Y), "x holds NaN or inf in "),
        ((X, Y, Y[:2]), "subclass labels have shape (2,)"),
        ((X,), "data is a tuple of 1"),
        (X, "data is ndarray: give a path to .npz"),
        (7, "data is int: give a path"),
        ([X, Y], "each batch must be (x, y)"),
        ([], "data gave no batch"),
        ((X, np.where(Y > 0, np.inf, Y)), "y holds inf at point 1: labels are whole numbers"),
        ((X, Y.astype(np.uint64) + 2**63), "y holds 9223372036854775808 at point 0"),
        ((X, np.eye(6)), "one-hot rows take y.argmax(1)"),
        ((X[:, :0], Y), "at least one coordinate"),
        ((X, [[1], [2, 3]]), "data holds no array"),
        ([(X[:3], Y[:3]), (X[3:, :1], Y[3:])], "batches differ: x of one has shape (3, "),
        ([(X[:3], Y[:3]), (X[3:], Y[3:], Y[3:])], "subclass labels come with some batches only"),
        ([(X[:3], Y[:3], Y[:3]), (X[3:], Y[3:])], "subclass labels come with some batches only"),
    ],
)
def test_wrong_data_is_one_line(data: Any, answer: str) -> None:
    with pytest.raises(CallError) as caught:
        read_points(data)
    assert answer in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_point_that_holds_nan_is_named() -> None:
    x = X.copy()
    x[4, 1, 1] = np.inf
    with pytest.raises(CallError, match="in 1 points, the first is point 4"):
        read_points((x, Y))


def test_wrong_keys_and_limits_are_one_line(tmp_path: Path) -> None:
    path = saved(tmp_path, x=X, y=Y)
    with pytest.raises(
        CallError, match="has no array 'group', only x, y: choose one of these with --sub"
    ):
        read_points(path, subclass="group")
    with pytest.raises(CallError, match="names a key"):
        read_points((X, Y), subclass="group")
    with pytest.raises(CallError, match="limit 0"):
        read_points(path, limit=0)


def test_files_that_are_no_npz_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(CallError, match="there is no file"):
        read_points(tmp_path / "nothing.npz")
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(CallError, match=r"no \.npz file"):
        read_points(tmp_path / "x.npy")
    for name, content in (
        ("text.npz", b"hello, world"),
        ("zip.npz", b"PK\x03\x04broken"),
        ("empty.npz", b""),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CallError, match="npz"):
            read_points(tmp_path / name)


class Bomb:
    """Runs when it is unpickled."""

    def __reduce__(self) -> Any:
        return (Path("ran").touch, ())


def test_pickled_arrays_are_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    objects = np.array([Bomb(), Bomb()], dtype=object)
    np.savez("data.npz", x=X[:2], y=objects)
    np.save("bare.npy", objects)
    Path("bare.npy").rename("bare.npz")
    with pytest.raises(CallError, match="unpickling can run any code"):
        read_points("data.npz")
    with pytest.raises(CallError, match=r"bare\.npz is no \.npz file"):
        read_points("bare.npz")
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("labels", "outputs", "expected"),
    [
        ([-1, 1, 1], 1, [-1, 1, 1]),
        ([0, 1, 1], 1, [-1, 1, 1]),
        ([1, 1], 1, [1, 1]),
        ([0, 0], 1, [-1, -1]),
        ([-1, 1], 2, [0, 1]),
        ([0, 1], 2, [0, 1]),
        ([0, 4], 5, [0, 4]),
    ],
)
def test_labels_are_read_as_the_model_needs_them(
    labels: list, outputs: int, expected: list
) -> None:
    assert labels_for(torch.tensor(labels), outputs).tolist() == expected


@pytest.mark.parametrize(
    ("labels", "outputs", "answer"),
    [
        ([0, 2], 1, "labels 0, 2: a model of one output takes -1/\\+1 or 0/1"),
        ([-1, 0, 1], 1, "one output"),
        ([0, 3], 3, "the model has 3 outputs, so labels are 0..2"),
        ([-1, 1], 3, "3 outputs"),
        (list(range(12)), 10, "labels 0, 1, 2, ..., 10, 11"),
    ],
)
def test_labels_outside_the_classes_are_one_line(labels: list, outputs: int, answer: str) -> None:
    with pytest.raises(CallError, match=answer):
        labels_for(torch.tensor(labels), outputs)


def test_radii_are_sorted_and_each_kept_once() -> None:
    assert known_radii([0.3, 0, 0.1, 0.3]) == (0.0, 0.1, 0.3)


@pytest.mark.parametrize("radii", [[], [-0.1], [float("nan")], [float("inf")]])
def test_wrong_radii_are_refused(radii: list) -> None:
    with pytest.raises(CallError, match="radi"):
        known_radii(radii)


@pytest.mark.parametrize(("norm", "distance"), [(1, 7.0), (2, 5.0), ("inf", 4.0)])
def test_natural_radii_end_at_half_the_distance_between_classes(norm: Any, distance: float) -> None:
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0]]).repeat(3, 1)
    radii = natural_radii(x, torch.tensor([0, 1] * 3), known_norm(norm))
    assert len(radii) == 8
    assert radii[-1] == distance / 2
    assert list(radii) == sorted(set(radii))
    with pytest.raises(CallError, match="one class"):
        natural_radii(x, torch.ones(6), known_norm(norm))
    with pytest.raises(CallError, match="lie on a point of another class"):
        natural_radii(x, torch.tensor([0, 0, 0, 1, 1, 1]), known_norm(norm))


def test_a_box_must_hold_the_data() -> None:
    x = torch.tensor([[-0.25, 0.5]])
    assert known_box((-1, 1), x) == (-1.0, 1.0)
    assert known_box(None, x) is None
    with pytest.raises(
        CallError, match=r"the box 0,1 excludes the data, which lies in \[-0.25, 0.5\]"
    ):
        known_box((0, 1), x)
    for wrong in ((1, 0), (0, 0), (0, float("inf")), (0,), (0, 1, 2)):
        with pytest.raises(CallError, match="give two finite ends"):
            known_box(wrong, x)


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda: known_radii(0.3), "radii 0.3: give a list of numbers"),
        (lambda: known_radii("0.2"), "radii '0.2': give a list of numbers"),
        (lambda: known_radii([None]), r"radii \[None\]: give a list"),
        (lambda: known_box(1, torch.ones(1, 2)), "box 1: give two finite ends"),
        (lambda: known_box("01", torch.ones(1, 2)), "box '01': give two"),
        (lambda: known_box((None, 1), torch.ones(1, 2)), r"box \(None, 1\)"),
        (lambda: named_norm(None), "norm None: choose 1, 2, inf"),
        (lambda: named_norm(3), "norm 3: choose"),
        (lambda: known_count("batch", 2.5, "at least 1"), "batch 2.5: give a whole number"),
        (lambda: read_points((X, Y), limit="5"), "limit '5': give a whole number"),
        (lambda: read_points((X, Y), subclass=Y), "subclass is ndarray: it names a key"),
        (lambda: within_reach((1.0, 1e25), torch.float32), r"radius 1e\+25: torch.float32"),
    ],
)
def test_what_is_of_the_wrong_type_is_one_line(call: Any, answer: str) -> None:
    with pytest.raises(CallError, match=answer):
        call()


def test_radii_may_be_any_numbers() -> None:
    for radii in (np.array([0.5, 0.25]), torch.tensor([0.5, 0.25]), (r / 4 for r in (2, 1))):
        assert known_radii(radii) == (0.25, 0.5)
    within_reach((1e25,), torch.float64)


@pytest.mark.parametrize("dtype", [">f4", ">f8", np.longdouble, np.float16])
def test_numbers_of_any_width_and_byte_order_are_read(tmp_path: Path, dtype: Any) -> None:
    x = X.astype(dtype)
    points = read_points(saved(tmp_path, x=x, y=Y.astype(">i4"), names=np.array([None])))
    assert points.x.tolist() == x.astype(float).tolist()
    assert points.y.tolist() == Y.tolist()


def test_bfloat16_and_lists_are_read() -> None:
    x = torch.from_numpy(X).bfloat16()
    assert torch.equal(read_points((x, Y)).x, x.float())
    points = read_points((X.tolist(), Y.tolist()))
    assert points.x.tolist() == X.tolist()
    assert points.y.tolist() == Y.tolist()


def huge() -> bytes:
    """An array that says it has 10^13 numbers."""
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (100000000000, 64), }"
    head = text.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head


def test_damaged_files_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez_compressed(path, x=np.random.default_rng(0).normal(size=(60, 4)), y=np.zeros(60))
    good = path.read_bytes()
    directory = good.index(b"PK\x01\x02")
    damage = {
        "compressed numbers": {i: good[i] ^ 0x5A for i in range(200, 260)},
        "encrypted": {6: good[6] | 1, directory + 8: good[directory + 8] | 1},
        "unknown compression": {directory + 10: 99},
    }
    for name, changes in damage.items():
        broken = bytearray(good)
        for at, value in changes.items():
            broken[at] = value
        path.write_bytes(broken)
        with pytest.raises(CallError, match="no readable") as caught:
            read_points(path)
        assert "\n" not in str(caught.value), name
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", huge())
        file.writestr("y.npy", b"")
    with pytest.raises(CallError, match="no readable"):
        read_points(path)
    path.write_bytes(b"PK")
    with pytest.raises(CallError, match=r"is no \.npz file"):
        read_points(path)
