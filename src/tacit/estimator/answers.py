"""What a fitted classifier answers: classes, probabilities, radii, and itself as a module, a file, a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from tacit.attack import known_norm
from tacit.base.device import choose_device
from tacit.certify import radius
from tacit.estimator.module import PolyReLUHead
from tacit.estimator.onnx_graph import write_onnx
from tacit.estimator.rows import Array, as_tensor, class_numbers
from tacit.estimator.saving import write_classifier
from tacit.nets import PolyReLUNet
from tacit.nets.head import Head

ROWS = 4096  # scored at once


class Answers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The half of `PolyReLUClassifier` that reads what `fit` wrote down."""

    device: str
    classes_: Array
    centre_: Array
    subclass_labels_: Array
    subclasses_: Array | None
    loss_curve_: list[float]
    net_: PolyReLUNet
    # as long as no fit stopped early
    validation_scores_: list[float] | None = None
    best_validation_score_: float | None = None

    def predict(self, X: Any) -> Array:
        """The class of the largest score, (n,)."""
        scores = self._scores(X)
        return self.classes_[scores.argmax(1).numpy()]

    def predict_proba(self, X: Any) -> Array:
        """Softmax of the scores, (n, C); columns as in `classes_`."""
        return self._scores(X).softmax(1).numpy()

    def decision_function(self, X: Any) -> Array:
        """The scores (n, C); of two classes the log-odds of the second, (n,)."""
        scores = self._scores(X)
        return (scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores).numpy()

    def robust_radius(self, X: Any, y: Any, norm: float | str = 2) -> tuple[Array, Array]:
        """Bounds (lower, upper) of how far each row can be moved in `norm` (1, 2 or inf) and keep its class y.

        `lower` is certified: no shorter perturbation breaks the row. `upper` is the shortest one that was found
        (`tacit.attack.minimal`), inf where none was. Both are 0 where the row is misclassified as it is. Rows may
        go anywhere: a box such as [0, 1] could only make the radii longer. Computed in float64.
        """
        check_is_fitted(self)
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", reset=False)
        device = torch.device(choose_device(self.device))
        x = as_tensor(X, device, torch.float64)
        numbers = torch.from_numpy(class_numbers(self.classes_, y)).to(device)
        head = self._head().to(device)
        found = radius(head, x, numbers, norm=known_norm(norm))
        return found.lower.cpu().numpy(), found.upper.cpu().numpy()

    def to_module(self) -> PolyReLUHead:
        """A torch module (a copy, in eval mode) from rows of X to the scores, to put behind a backbone."""
        check_is_fitted(self)
        return PolyReLUHead(self._head()).eval()

    def save(self, path: str | Path) -> None:
        """Write a safetensors file that `load` reads: weights, parameters, classes; no pickle."""
        check_is_fitted(self)
        write_classifier(self, Path(path))

    def export_onnx(self, path: str | Path) -> None:
        """Write an ONNX graph: X float (N, D) to `label` (N,) and `probabilities` (N, C). Needs onnx."""
        check_is_fitted(self)
        write_onnx(self._head(), self.classes_, Path(path))

    def _head(self) -> Head:
        """What was fitted, as a function of X."""
        owner = torch.from_numpy(np.searchsorted(self.classes_, self.subclass_labels_))
        return Head(self.net_, owner)

    @torch.no_grad()
    def _scores(self, X: Any) -> Float[Tensor, "n C"]:
        """One score a class, a chunk of rows at a time."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=(np.float64, np.float32), order="C", reset=False)
        device, dtype = torch.device(choose_device(self.device)), self.net_.w.dtype
        head = self._head().to(device)
        parts = [X[i : i + ROWS] for i in range(0, len(X), ROWS)]
        return torch.cat([head(as_tensor(part, device, dtype)).cpu() for part in parts])
