"""Reading back the nets of a run folder."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError, safe_open

from tacit.errors import RunError
from tacit.nets.multiclass import MultiClassNet
from tacit.nets.two_layer import TwoLayerNet


def load_net(path: str | Path) -> TwoLayerNet | MultiClassNet:
    """The net that a `nets/*.safetensors` file holds, rebuilt from its tensors and metadata."""
    try:
        with safe_open(path, framework="pt") as file:
            meta = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise RunError(f"{path} is no readable safetensors file: {error}") from error
    kind = meta.get("kind")
    if kind == "two_layer":
        fixed = meta.get("fixed_v") == "true"
        return TwoLayerNet(
            tensors["w"], tensors["v"], tensors.get("b"), float(meta["p"]), fixed_v=fixed
        )
    if kind == "multi_class":
        return MultiClassNet(tensors["w"], tensors["labels"])
    raise RunError(
        f"{path} holds a net of kind {kind!r}; tacit knows 'two_layer' and 'multi_class'"
    )
