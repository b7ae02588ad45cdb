"""A classifier as one safetensors file: its tensors, and the rest as JSON in the metadata. No pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from tacit.base.files import read_tensors, write_tensors
from tacit.errors import CallError, RunError
from tacit.estimator.rows import Array
from tacit.estimator.settings import check_parameters
from tacit.nets import PolyReLUNet
from tacit.nets.head import KIND
from tacit.nets.saved import rebuilt, refuse_pickle

NAMES = ("parameters", "classes", "subclasses", "outputs", "features", "losses")

C = TypeVar("C")


def write_classifier(classifier: Any, path: Path) -> None:
    """What is needed to predict, to ask for radii, and to go on training."""
    tensors, meta = classifier.net_.state()
    tensors["centre"] = torch.from_numpy(classifier.centre_)
    parameters = classifier.get_params(deep=False)
    if isinstance(parameters["random_state"], np.random.RandomState):
        parameters["random_state"] = None  # a generator has moved on; a file holds seeds only
    held = {
        "parameters": {name: plain(value) for name, value in parameters.items()},
        "classes": as_json(classifier.classes_, "y"),
        "subclasses": None
        if classifier.subclasses_ is None
        else as_json(classifier.subclasses_, "subclass"),
        "outputs": np.searchsorted(classifier.classes_, classifier.subclass_labels_).tolist(),
        "features": list(getattr(classifier, "feature_names_in_", [])),
        "losses": classifier.loss_curve_,
    }
    told = {name: json.dumps(value) for name, value in held.items()}
    write_tensors(path, tensors, meta | told | {"kind": KIND.name}, "choose another path")


def read_classifier(cls: type[C], path: Path) -> C:
    """The classifier of that file; a foreign or damaged one is refused in one line."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise CallError(f"{path} {what}: give the file that {cls.__name__}.save wrote")
    refuse_pickle(path)
    tensors, meta = read_tensors(path)
    if (kind := meta.get("kind")) != KIND.name:
        told = "tensors of something else" if kind is None else f"a net of kind {kind!r}"
        raise RunError(
            f"{path} holds {told} and no {cls.__name__}: give a file that {cls.__name__}.save wrote "
            "(tacit.nets.load_net reads tacit's nets)"
        )
    try:
        held = {name: json.loads(meta[name]) for name in NAMES}
        classifier: Any = cls(**held["parameters"])
        check_parameters(held["parameters"])
        classes = from_json(held["classes"])
        named = None if held["subclasses"] is None else from_json(held["subclasses"])
        owner = np.array(held["outputs"], dtype=np.int64)
        losses = [float(loss) for loss in held["losses"]]
        features = np.array([str(name) for name in held["features"]], dtype=object)
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path} is damaged: its metadata cannot be read ({error})") from error
    net = read_net(path, tensors, meta)
    check_fit(path, net, classes, owner, losses, features)
    classifier.classes_, classifier.subclass_labels_ = classes, classes[owner]
    classifier.subclasses_ = named
    classifier.centre_, classifier.net_ = tensors["centre"].numpy(), net
    classifier.n_features_in_ = net.w.shape[1]
    if len(features):
        classifier.feature_names_in_ = features
    classifier.loss_curve_, classifier.n_iter_ = losses, len(losses)
    classifier.best_loss_ = min(losses)
    return classifier


def read_net(path: Path, tensors: dict[str, Tensor], meta: dict[str, str]) -> PolyReLUNet:
    """The net, as `nets.saved` rebuilds and checks it."""
    for name in ("b", "centre"):
        if name not in tensors:
            raise RunError(f"{path} holds a classifier without its tensor {name!r}")
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise RunError(f"{path} is damaged: tensor {name!r} holds NaN or inf")
    net: PolyReLUNet = rebuilt(path, tensors, meta | {"kind": "poly_relu"})
    return net


def check_fit(
    path: Path, net: PolyReLUNet, classes: Array, owner: Array, losses: list[float], features: Array
) -> None:
    """Do tensors and metadata belong together?"""
    K, D = net.v.shape[-2], net.w.shape[-1]
    whole = len(classes) >= 2 and np.array_equal(np.unique(owner), np.arange(len(classes)))
    if net.w.dim() != 2 or len(owner) != K or not whole:
        raise RunError(
            f"{path} is damaged: {K} outputs, {len(owner)} of them with a class, {len(classes)} classes"
        )
    if not losses or len(features) not in (0, D):
        raise RunError(
            f"{path} is damaged: {len(features)} names of {D} features, {len(losses)} epochs"
        )


def as_json(labels: Array, given: str) -> dict[str, Any]:
    """Labels with their type: numbers, booleans or strings; `given` is the argument that they were."""
    values = labels.tolist()
    if labels.dtype.kind not in "biufUO" or not all(
        isinstance(v, (bool, int, float, str)) for v in values
    ):
        raise CallError(
            f"{given} of type {labels.dtype} ({values[0]!r}): a file holds numbers and strings; relabel {given}"
        )
    return {"dtype": labels.dtype.str, "values": values}


def from_json(held: dict[str, Any]) -> Array:
    """The labels that `as_json` wrote."""
    dtype = np.dtype(held["dtype"])
    if dtype.kind not in "biufUO":
        raise ValueError(f"labels of type {dtype}")
    return np.array(held["values"], dtype=dtype)


def plain(value: Any) -> Any:
    """numpy's numbers as Python's."""
    return value.item() if isinstance(value, np.generic) else value
