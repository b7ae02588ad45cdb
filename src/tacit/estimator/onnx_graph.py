r"""The classifier as an ONNX graph, built node by node: what `predict` and `predict_proba` compute, in float32.

    c = X - centre,  u = c / ||c||,  hidden = relu(u W')^p,  logits = hidden V' [* ||c||: as released] + b

with W the unit directions of the neurons and V = v_j ||w_j||; the softmax of the logits is summed over the
outputs of each class. For p = 1, as released, that is the net itself, which is 1-homogeneous.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from tacit.base.files import write_bytes
from tacit.base.linalg import unit_rows
from tacit.errors import CallError
from tacit.estimator.rows import Array
from tacit.nets.head import Head

OPSET = 18
IR_VERSION = 9  # of the same age as the opset: older runtimes read it


def write_onnx(head: Head, classes: Array, path: Path) -> None:
    """The graph, checked by onnx and written."""
    try:
        import onnx
    except ImportError as error:
        raise CallError("export_onnx needs the package onnx: pip install 'tacit[onnx]'") from error
    model = onnx_model(onnx, head, classes)
    onnx.checker.check_model(model, full_check=True)
    write_bytes(path, model.SerializeToString(), "choose another path")


def onnx_model(onnx: Any, head: Head, classes: Array) -> Any:
    """X (N, D) to label (N,) and probabilities (N, C)."""
    make, kinds = onnx.helper, onnx.TensorProto
    net = head.net
    assert net.centre is not None
    assert net.b is not None
    directions, lengths = unit_rows(net.w)
    member = torch.nn.functional.one_hot(head.owner, len(classes))
    constants = {
        "centre": net.centre,
        "directions": directions.T,
        "outer": (net.v * lengths.T).T,
        "bias": net.b,
        "member": member,
        "power": torch.tensor(net.p),
        "none": torch.tensor(0.0),
        "one": torch.tensor(1.0),
    }
    labels, kind = label_tensor(onnx, classes)
    held = [
        onnx.numpy_helper.from_array(np.ascontiguousarray(t.to(torch.float32).numpy()), name)
        for name, t in constants.items()
    ]
    held += [labels, onnx.numpy_helper.from_array(np.array([1], np.int64), "axis")]
    node = make.make_node
    nodes = [
        node("Sub", ["X", "centre"], ["c"]),
        node("ReduceL2", ["c", "axis"], ["size"], keepdims=1),
        node("Greater", ["size", "none"], ["off"]),
        node("Where", ["off", "size", "one"], ["safe"]),
        node("Div", ["c", "safe"], ["u"]),
        node("MatMul", ["u", "directions"], ["z"]),
        node("Relu", ["z"], ["r"]),
        node("Pow", ["r", "power"], ["hidden"]),
        node("MatMul", ["hidden", "outer"], ["plain"]),
        node("Mul", ["plain", "size" if net.normalize_input else "one"], ["scaled"]),
        node("Add", ["scaled", "bias"], ["logits"]),
        node("Softmax", ["logits"], ["each"], axis=1),
        node("MatMul", ["each", "member"], ["probabilities"]),
        node("ArgMax", ["probabilities"], ["place"], axis=1, keepdims=0),
        node("Gather", ["labels", "place"], ["label"], axis=0),
    ]
    given = make.make_tensor_value_info("X", kinds.FLOAT, ["N", len(net.centre)])
    told = [
        make.make_tensor_value_info("label", kind, ["N"]),
        make.make_tensor_value_info("probabilities", kinds.FLOAT, ["N", len(classes)]),
    ]
    graph = make.make_graph(nodes, "PolyReLUClassifier", [given], told, held)
    return make.make_model(
        graph,
        opset_imports=[make.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="tacit",
    )


def label_tensor(onnx: Any, classes: Array) -> tuple[Any, int]:
    """The labels as a constant, whole numbers as int64, others as float, the rest as strings; and their type."""
    kinds = onnx.TensorProto
    kind = {"i": kinds.INT64, "u": kinds.INT64, "b": kinds.INT64, "f": kinds.FLOAT}.get(
        classes.dtype.kind, kinds.STRING
    )
    words = [str(v) for v in classes] if kind == kinds.STRING else classes.tolist()
    return onnx.helper.make_tensor("labels", kind, [len(words)], words), kind
