"""A fitted classifier as a torch module, to be put behind a backbone, attacked, or trained on."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tacit.base.linalg import unit_rows
from tacit.nets.head import Head, class_scores
from tacit.nn import PolyReLU


class PolyReLUHead(nn.Module):
    """One score a class from rows of the X that the classifier was fitted on: centre, PolyReLU, linear layer."""

    centre: Tensor
    owner: Tensor

    def __init__(self, head: Head) -> None:
        super().__init__()
        net = head.net
        (h, D), K = net.w.shape, net.v.shape[0]
        with torch.random.fork_rng(devices=[]):  # what the layers draw at first is overwritten
            self.hidden = PolyReLU(D, h, net.p, net.normalize_input, dtype=net.w.dtype)
            self.out = nn.Linear(h, K, dtype=net.w.dtype)
        weights = {"hidden.weight": net.w, "out.weight": net.v, "out.bias": net.b}
        self.load_state_dict(weights)
        self.register_buffer("centre", None if net.centre is None else net.centre.clone())
        self.register_buffer("owner", head.owner.clone())

    def forward(self, x: Float[Tensor, "n D"]) -> Float[Tensor, "n C"]:
        """The scores; softmax of them is `predict_proba`."""
        c = x - self.centre
        rows = c if self.hidden.normalize_input else unit_rows(c)[0]
        return class_scores(self.out(self.hidden(rows)), self.owner)
