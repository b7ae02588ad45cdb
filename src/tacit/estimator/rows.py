"""Labelled rows on their way to the training: weights, validation part, and which output each row trains."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_non_negative, validate_data
from torch import Tensor

from tacit.errors import CallError
from tacit.estimator.settings import check_parameters
from tacit.measure.subclasses import discover

Array = NDArray[Any]


@dataclass(frozen=True)
class Rows:
    """x (n, D), class numbers y (n,), and where given weights (n,), subclass numbers (n,) and their names."""

    x: Array
    y: Array
    weights: Array | None = None
    subclass: Array | None = None
    names: Array | None = None

    def take(self, which: Array) -> Rows:
        """Some of the rows."""
        weights, subclass = (
            None if part is None else part[which] for part in (self.weights, self.subclass)
        )
        return Rows(self.x[which], self.y[which], weights, subclass, self.names)

    def centre(self) -> Array:
        """The weighted mean, in the type of x; rows that are all equal have nothing around it."""
        if (self.x == self.x[0]).all():
            raise CallError(
                f"X holds one point {len(self.x)} times (all its features are constant): nothing is left "
                "when the mean is taken off; give rows that differ"
            )
        mean = np.average(self.x, axis=0, weights=self.weights)
        return np.asarray(mean, dtype=self.x.dtype)

    def tensors(
        self, device: torch.device, dtype: torch.dtype
    ) -> tuple[Float[Tensor, "n D"], Float[Tensor, " n"] | None]:
        """x, and the weights scaled to mean 1."""
        x = as_tensor(self.x, device, dtype)
        if self.weights is None:
            return x, None
        return x, as_tensor(self.weights / self.weights.mean(), device, dtype)


def as_tensor(x: Array, device: torch.device, dtype: torch.dtype) -> Float[Tensor, ...]:
    """Without a copy where nothing changes; torch warns of memory that it may not write to."""
    return torch.from_numpy(np.require(x, requirements=["C", "W"])).to(device, dtype)


def validated(
    estimator: Any, X: Any, y: Any, sample_weight: Any, subclass: Any, *, reset: bool
) -> tuple[Rows, Array]:
    """Checked as scikit-learn does: the rows of positive weight (their y is not numbered yet), and the labels."""
    check_parameters(estimator.get_params(deep=False))
    if (subclass is None) == (estimator.supervision == "subclasses"):
        raise CallError(
            f"supervision={estimator.supervision!r} and subclass {'missing' if subclass is None else 'given'}: "
            "finer labels go with supervision='subclasses', as fit(X, y, subclass=...)"
        )
    X, y = validate_data(estimator, X, y, dtype=(np.float64, np.float32), order="C", reset=reset)
    check_classification_targets(y)
    names = None
    if subclass is not None:
        subclass = column_or_1d(subclass)
        check_consistent_length(X, subclass)
        check_named(subclass)
        names, subclass = np.unique(subclass, return_inverse=True)
    if sample_weight is None:
        return Rows(X, y, None, subclass, names), y
    each = np.full(len(X), sample_weight) if isinstance(sample_weight, Number) else sample_weight
    weights = check_array(each, ensure_2d=False, dtype=X.dtype, input_name="sample_weight")
    weights = column_or_1d(weights)
    check_consistent_length(X, weights)
    check_non_negative(weights, "`sample_weight`")
    kept = weights > 0
    if not kept.any():
        raise CallError("sample_weight: every weight is zero; at least one row must count")
    # over the largest: sums of large weights overflow, and only the ratios count
    rows = Rows(X, y, weights / weights.max(), subclass, names).take(kept)
    return rows, rows.y


def check_named(subclass: Array) -> None:
    """Every row has a subclass: None and NaN (which is not equal to itself) are no names."""
    lacking = [i for i, name in enumerate(subclass.tolist()) if name is None or name != name]
    if lacking:
        raise CallError(
            f"subclass holds {subclass[lacking[0]]} in row {lacking[0]} ({len(lacking)} rows in all): give every "
            "row a subclass, or leave those rows out"
        )


def class_numbers(classes: Array, y: Array) -> Array:
    """The place of each label in the sorted `classes`; one that is not there is named."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise CallError(
            f"y holds {unknown.tolist()[0]!r}, which is not among the classes {some(classes)}: drop those rows, "
            "or fit anew with all the classes"
        )
    return np.searchsorted(classes, y)


def some(classes: Array) -> str:
    """The first ten, as the user wrote them."""
    return ", ".join(map(repr, classes.tolist()[:10])) + (", ..." if len(classes) > 10 else "")


def check_classes(classes: Array) -> None:
    """At least two."""
    if len(classes) < 2:
        raise CallError(
            f"y holds one class only ({some(classes)}): a classifier needs at least two"
        )


def kept_aside(rows: Rows, fraction: float, random: np.random.RandomState) -> tuple[Rows, Rows]:
    """The rows to train on and those to validate on, classes in their proportions."""
    which = np.arange(len(rows.y))
    train, rest = train_test_split(which, test_size=fraction, stratify=rows.y, random_state=random)
    return rows.take(train), rows.take(rest)


def outputs(
    rows: Rows, classes: int, supervision: str, centre: Array, count: int | None, seed: int
) -> tuple[Int64[Tensor, " n"], Int64[Tensor, " K"], Array | None]:
    """The output that each row trains, the class of each output, and its subclass where these were given."""
    if supervision == "labels":
        return torch.tensor(rows.y), torch.arange(classes), None
    finer = discovered(rows, centre, count, seed) if rows.subclass is None else rows.subclass
    pairs, z = np.unique(np.stack([rows.y, finer], 1), axis=0, return_inverse=True)
    names = None if rows.names is None else rows.names[pairs[:, 1]]
    return torch.tensor(z), torch.tensor(pairs[:, 0]), names


def discovered(rows: Rows, centre: Array, count: int | None, seed: int) -> Array:
    """Subclasses found in the centred rows; equal rows of a class count once, in any order and of any weight."""
    wide = np.ascontiguousarray(np.column_stack([rows.x - centre + 0.0, rows.y]))
    # as bytes: sorting whole rows of numbers is far slower; + 0.0 makes one zero of two
    keys = wide.view(np.dtype((np.void, wide.itemsize * wide.shape[1]))).ravel()
    _, first, back = np.unique(keys, return_index=True, return_inverse=True)
    found = discover(
        torch.tensor(wide[first, :-1]),
        torch.tensor(rows.y[first]),
        torch.Generator().manual_seed(seed),
        count,
    )
    return found.z.numpy()[back]
