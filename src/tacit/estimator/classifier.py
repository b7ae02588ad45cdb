"""`PolyReLUClassifier`: the shallow PolyReLU net of min2024 as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from torch import Tensor

from tacit.base.device import choose_device
from tacit.errors import CallError
from tacit.estimator.answers import Answers
from tacit.estimator.fitting import (
    Schedule,
    accuracy_of,
    epochs_of,
    fit_net,
    own_outputs,
    start_head,
)
from tacit.estimator.rows import (
    Array,
    Rows,
    check_classes,
    class_numbers,
    kept_aside,
    outputs,
    some,
    validated,
)
from tacit.estimator.saving import read_classifier
from tacit.nets.head import Head
from tacit.train import LogitTraining
from tacit.train.descent.logits import Points


def knows_partial_fit(classifier: PolyReLUClassifier) -> bool:
    """Is there a partial_fit? Subclasses are given or found for all rows at once."""
    if classifier.supervision != "labels":
        raise AttributeError(
            f"partial_fit needs supervision='labels' and here it is {classifier.supervision!r}: call fit"
        )
    return True


class PolyReLUClassifier(Answers):
    r"""A classifier with one hidden layer of relu(<w_j, c>)^p / ||w_j||^(p-1), c = x - mean of the training X.

    A larger p makes neurons answer to the patterns within a class rather than to their average, which moves the
    points' nearest mistakes further away, without adversarial training (min2024, Sections 2 and 5.2).

    Parameters
    ----------
    p : the power, >= 1; 1 is a ReLU net.
    width : number of neurons.
    loss : "logistic" (cross-entropy of the softmax) or "exp" (sum of exp(z_k - z_y) over the others).
    optimizer, learning_rate, batch_size, weight_decay : how the weights move. Plain "sgd" needs a far larger
        learning rate, for a large p at first passes little on.
    max_iter, tol, n_iter_no_change : at most `max_iter` epochs; training ends when the loss (with
        `early_stopping`: the accuracy) has not improved by more than `tol` for `n_iter_no_change` of them.
    early_stopping, validation_fraction : keep that share of the rows aside and return the net that is best on it.
    normalize_input : True is the layer as the authors released it: hidden values are divided by ||c||^(p-1), so
        X keeps its scale. False is the layer as written: every row is centred and divided by its length before
        the net, in prediction too, so a class depends on the direction of c alone.
    supervision : "labels"; "subclasses" (fit takes `subclass`, finer labels within the classes); "discovered"
        (subclasses are found by spherical k-means, `n_subclasses` in each class or as many as the data say).
        A class then has several outputs, and its probability is their sum (li2025, Section 4.2).
    warm_start : `fit` goes on from the last net. The centre stays that of the first fit.
    random_state : seed of weights, batches, and k-means; torch's own generators are neither read nor moved.
    device : "cpu", "cuda", or "auto" (a GPU where there is one).

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ (where X had names) : as in every scikit-learn classifier.
    n_iter_, loss_curve_, best_loss_ : epochs done, the mean loss of each, the least of them.
    validation_scores_, best_validation_score_ : accuracy after each epoch (None without early stopping).
    centre_ : mean of the training X, by `sample_weight`.
    net_ : the net, on the CPU; it holds the centre and reads rows of X as they are.
    subclasses_ : the subclass of each output of `net_`, as `fit` was given them, or None.
    subclass_labels_ : the class of each output of `net_`; `classes_` where supervision is "labels".

    Numbers are those of X: float32 where it is float32, else float64, which is about half as fast.
    """

    def __init__(
        self,
        p: float = 3.0,
        width: int = 500,
        *,
        loss: str = "logistic",
        optimizer: str = "adam",
        learning_rate: float = 2e-3,
        batch_size: int = 200,
        max_iter: int = 200,
        tol: float = 1e-4,
        n_iter_no_change: int = 10,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        weight_decay: float = 0.0,
        normalize_input: bool = True,
        supervision: str = "labels",
        n_subclasses: int | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        device: str = "cpu",
    ) -> None:
        self.p = p
        self.width = width
        self.loss = loss
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.weight_decay = weight_decay
        self.normalize_input = normalize_input
        self.supervision = supervision
        self.n_subclasses = n_subclasses
        self.warm_start = warm_start
        self.random_state = random_state
        self.device = device

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, subclass: Any = None
    ) -> PolyReLUClassifier:
        """Train on X (n, D) and labels y (n,); of `sample_weight` only the ratios count, 0 leaves a row out.

        `subclass` (n,) goes with supervision="subclasses" and is refused otherwise.
        """
        again = self.warm_start and hasattr(self, "net_")
        rows, labels = validated(self, X, y, sample_weight, subclass, reset=not again)
        classes = self.classes_ if again else np.unique(labels)
        check_classes(classes)
        rows = replace(rows, y=class_numbers(classes, labels))
        random = check_random_state(self.random_state)
        aside = None
        if self.early_stopping:
            rows, aside = kept_aside(rows, self.validation_fraction, random)
        centre, seed = self.centre_ if again else rows.centre(), int(random.randint(2**31 - 1))
        if again and self.supervision == "discovered":
            # found anew, subclasses would have other numbers: ask the net whose points these are
            z, owner, named = own_outputs(self._head(), rows), self._head().owner, None
        else:
            z, owner, named = outputs(
                rows, len(classes), self.supervision, centre, self.n_subclasses, seed
            )
        device = torch.device(choose_device(self.device))
        if again:
            head = self._same_head(owner, named).to(device)
        else:
            head = self._start(rows, centre, owner, seed).to(device)
        x, weights = rows.tensors(device, head.net.w.dtype)
        points = Points(head.net, x, z.to(device), weights)
        schedule = Schedule(self.max_iter, self.batch_size, self.tol, self.n_iter_no_change)
        accuracy = None
        if aside is not None:
            x, weights = aside.tensors(device, head.net.w.dtype)
            accuracy = partial(accuracy_of, head, x, torch.from_numpy(aside.y).to(device), weights)
        fitted = fit_net(self._training(head), points, schedule, random, accuracy)
        self.classes_, self.centre_, self.subclasses_ = classes, centre, named
        self._keep(replace(head, net=fitted.net), fitted.losses, again=again)
        self.validation_scores_ = fitted.scores or None
        self.best_validation_score_ = max(fitted.scores) if fitted.scores else None
        self.__dict__.pop("_going", None)
        if not fitted.converged:
            warnings.warn(
                f"max_iter={self.max_iter} epochs were done and the loss still falls: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @available_if(knows_partial_fit)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> PolyReLUClassifier:
        """One epoch on these rows. The first call takes all the `classes`; its X gives the centre for good."""
        first = not hasattr(self, "net_")
        rows, labels = validated(self, X, y, sample_weight, None, reset=first)
        known = np.unique(labels if classes is None else classes) if first else self.classes_
        if first and classes is None:
            raise CallError(
                "classes must be passed on the first call to partial_fit: all that will come"
            )
        if classes is not None and not np.array_equal(np.unique(classes), known):
            raise CallError(f"classes={classes!r}: they were {some(known)} in the first call")
        check_classes(known)
        rows = replace(rows, y=class_numbers(known, labels))
        owner = torch.arange(len(known))
        device = torch.device(choose_device(self.device))
        random = check_random_state(self.random_state)
        if first:
            self.centre_, self.subclasses_ = rows.centre(), None
            seed = int(random.randint(2**31 - 1))
            head = self._start(rows, self.centre_, owner, seed).to(device)
        else:
            head = self._same_head(owner, None).to(device)
        made = self._movement() | {"device": device}
        going = self.__dict__.get("_going")
        if going is None or going[0] != made:  # also after set_params
            going = made, self._training(head), random
        x, weights = rows.tensors(device, head.net.w.dtype)
        points = Points(head.net, x, torch.from_numpy(rows.y).to(device), weights)
        epoch = len(getattr(self, "loss_curve_", [])) + 1
        (loss,) = epochs_of(
            going[1], points, going[2], batch=self.batch_size, first=epoch, last=epoch
        )
        self.classes_, self._going = known, going
        self._keep(replace(head, net=going[1].nets()[0]), [loss], again=not first)
        return self

    @classmethod
    def load(cls, path: str | Path) -> PolyReLUClassifier:
        """The classifier that `save` wrote."""
        return read_classifier(cls, Path(path))

    def _start(self, rows: Rows, centre: Array, owner: Tensor, seed: int) -> Head:
        """Before training."""
        return start_head(
            rows, centre, owner, seed, self.width, float(self.p), self.normalize_input
        )

    def _same_head(self, owner: Tensor, named: Array | None) -> Head:
        """The last head, which training goes on with; refused where the parameters ask for another net."""
        head = self._head()
        now = {
            "p": head.net.p,
            "width": len(head.net.w),
            "normalize_input": head.net.normalize_input,
        }
        for name, value in now.items():
            if getattr(self, name) != value:
                raise CallError(
                    f"{name}={getattr(self, name)!r}: the net that training goes on with has {value!r}; "
                    "set it back, or fit anew with warm_start=False"
                )
        if not torch.equal(owner, head.owner):
            raise CallError(
                f"the last fit had {len(head.owner)} subclasses and these rows give {len(owner)}, or of other "
                "classes: fit anew with warm_start=False"
            )
        before = self.subclasses_
        if named is not None and not (before is not None and np.array_equal(named, before)):
            told = "none" if before is None else some(before)
            raise CallError(
                f"the subclasses are {some(named)}, class by class, and those of the fit that training goes on "
                f"from were {told}: give the same, or fit anew with warm_start=False"
            )
        return head

    def _movement(self) -> dict[str, Any]:
        """How weights move: what a training is made with."""
        names = {"optimizer": "optimizer", "learning_rate": "step", "loss": "loss"}
        found = {word: getattr(self, name) for name, word in names.items()}
        return found | {"weight_decay": self.weight_decay}

    def _training(self, head: Head) -> LogitTraining:
        """Fresh, from this net on."""
        return LogitTraining([head.net], **self._movement())

    def _keep(self, head: Head, losses: list[float], *, again: bool) -> None:
        """Write down what was fitted."""
        self.net_ = head.to(torch.device("cpu")).net
        self.subclass_labels_ = self.classes_[head.owner.cpu().numpy()]
        self.loss_curve_ = [*(self.loss_curve_ if again else []), *losses]
        self.n_iter_, self.best_loss_ = len(self.loss_curve_), min(self.loss_curve_)
