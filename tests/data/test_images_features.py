"""Features in numpy files: what is read, and each way in which a file can be wrong."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from tacit.data.images import Features, load_features, npz
from tacit.errors import CallError

X = np.random.default_rng(0).normal(size=(6, 3))
Y = np.array([2, 0, 0, 7, 2, 7])


def save(path: Path, **arrays: object) -> Path:
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("y", "classes", "numbers"),
    [
        (Y, ("0", "2", "7"), [1, 0, 0, 2, 1, 2]),
        (Y - 2.0, ("-2", "0", "5"), [1, 0, 0, 2, 1, 2]),
        (Y == 0, ("False", "True"), [0, 1, 1, 0, 0, 0]),
        (np.array(list("cababc")), ("a", "b", "c"), [2, 0, 1, 0, 1, 2]),
        (np.array([b"dog", b"cat"] * 3), ("cat", "dog"), [1, 0] * 3),
    ],
)
def test_labels_are_numbered_in_the_order_of_the_classes(y, classes, numbers, tmp_path):
    read = load_features(save(tmp_path / "f.npz", x=X, y=y))
    assert isinstance(read, Features)
    assert read.classes == classes
    assert read.y.tolist() == numbers
    assert (read.y.dtype, read.x.dtype) == (torch.int64, torch.float32)
    assert np.array_equal(read.x.numpy(), X.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint8, ">f8", "<i4"])
def test_numbers_of_any_type_become_float32(dtype, tmp_path):
    x = (X * 50).clip(0, 99).astype(dtype)
    read = load_features(save(tmp_path / "f.npz", x=x, y=Y))
    assert np.array_equal(read.x.numpy(), x.astype(np.float32))


def test_compressed_files_are_read(tmp_path):
    np.savez_compressed(tmp_path / "f.npz", x=X, y=Y, other=Y)
    assert np.array_equal(load_features(str(tmp_path / "f.npz")).x, X.astype(np.float32))


def test_a_folder_of_npy_files_is_mapped_not_read(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    np.save(tmp_path / "y.npy", Y)
    monkeypatch.setattr(npz, "ROWS", 2)
    read = load_features(tmp_path)
    assert np.array_equal(read.x.numpy(), X.astype(np.float32))
    assert read.classes == ("0", "2", "7")
    read.x[0, 0] = 99.0  # a private copy of that page: the file keeps its number
    assert np.load(tmp_path / "x.npy")[0, 0] == np.float32(X[0, 0])


HOLE = np.where(np.arange(18).reshape(6, 3) == 13, np.nan, X)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": HOLE, "y": Y}, "NaN or inf .* in 1 of 6 rows, the first is row 4: drop or impute"),
        ({"x": X * 1e60, "y": Y}, "in 6 of 6 rows, the first is row 0"),
        ({"x": np.full((6, 3), 0.5), "y": Y}, "x is constant, its 6 rows are all equal"),
        ({"x": X[:5], "y": Y}, "x has 5 rows and y 6 labels"),
        ({"x": X[0], "y": Y}, r"x has shape \(3,\): one row a point is needed"),
        ({"x": X.reshape(6, 3, 1), "y": Y}, r"x\.reshape\(len\(x\), -1\)"),
        ({"x": X[:0], "y": Y[:0]}, r"x has shape \(0, 3\)"),
        ({"x": X + 1j, "y": Y}, "x holds complex128: numbers are needed"),
        ({"x": X.astype(str), "y": Y}, "x holds <U"),
        ({"x": X, "y": Y[:, None]}, r"y has shape \(6, 1\).*y\.ravel\(\)"),
        ({"x": X, "y": np.eye(6)}, r"y has shape \(6, 6\).*y\.argmax\(1\)"),
        ({"x": X, "y": np.float64(1)}, r"y has shape \(\)"),
        ({"x": X, "y": Y + 0.5}, r"y holds 2\.5 in row 0"),
        ({"x": X, "y": np.where(Y == 7, np.nan, Y)}, "y holds nan in row 3"),
        ({"x": X, "y": Y.astype("datetime64[s]")}, "labels are whole numbers or strings"),
        ({"x": X, "y": np.full(6, "cat")}, r"one class only \(cat\)"),
        ({"x": X}, "has no array 'y', only x"),
        ({"features": X, "y": Y}, "has no array 'x', only features, y"),
        (
            {"x": X, "y": np.array(list("abcabc"), dtype=object)},
            "holds pickled objects, and is not",
        ),
    ],
)
def test_what_is_wrong_with_the_data_is_told(arrays, words, tmp_path):
    path = save(tmp_path / "f.npz", **arrays)
    with pytest.raises(CallError, match=words):
        load_features(path)


def test_what_is_wrong_with_the_file_is_told(tmp_path):
    with pytest.raises(CallError, match=r"there is no file .*absent\.npz: features are an \.npz"):
        load_features(tmp_path / "absent.npz")
    (tmp_path / "bad.npz").write_bytes(pickle.dumps({"x": 1}))
    with pytest.raises(CallError, match=r"is no \.npz file: write numpy\.savez"):
        load_features(tmp_path / "bad.npz")
    whole = save(tmp_path / "whole.npz", x=X, y=Y).read_bytes()
    for cut in (4, 200, len(whole) - 10):
        (tmp_path / "cut.npz").write_bytes(whole[:cut])
        with pytest.raises(CallError, match=r"cut\.npz is not readable: "):
            load_features(tmp_path / "cut.npz")
    with pytest.raises(CallError, match="has no array 'x', only nothing"):
        load_features(tmp_path)
    np.save(tmp_path / "y.npy", Y)
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(CallError, match="holds pickled objects"):
        load_features(tmp_path)
    (tmp_path / "x.npy").write_bytes(b"")
    with pytest.raises(CallError, match="is not readable"):
        load_features(tmp_path)
