r"""A ResNet-18 with a PolyReLU head: the shallow net of min2024 (Section 5.2) on features trained with it.

    c = (f - mean) / sd,    hidden_j = ||c|| ||w_j|| relu(cos(w_j, c))^p,    logits = v hidden + b

f are the pooled features that the linear head of `ResNet18` reads. Mean and sd are those of a batch norm without
weights, so that c is centred as Section 5.2.1 wants it (pooled features are never negative, and without a centre
all cosines between them are near 1). The hidden layer is `tacit.nn.PolyReLU` as released, 1-homogeneous in c.

It starts small: at a tenth of He's weights. A random neuron in D dimensions passes on about D^(-p/2) of ||c||;
its direction turns the faster the shorter it is. On the 512 random features of a start of width 64 (CIFAR-10 at
8 x 8 pixels, p = 3, steps of .1) the loss left log 2 after 150 steps, with He's own weights after 300.

The head is in full precision also where the convolutions are in bfloat16: with all of it in bfloat16 the loss on
CIFAR-10 became NaN after two steps or three on an H200, in each of twelve tries at one seed. Why is not known.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tacit.nets.kinds import register
from tacit.nn.layered import LayeredNet, Pixels, load
from tacit.nn.poly_relu import PolyReLU
from tacit.nn.residual import ResidualNet, eighteen

SMALL = 0.1  # of He's weights


class PolyHeadResNet18(ResidualNet):
    """`hidden` PolyReLU neurons of degree p between the features and the linear head.

    From one generator its convolutions are those of the ResNet18: the head is drawn last.
    """

    def __init__(
        self,
        classes: int = 10,
        channels: int = 3,
        width: int = 64,
        hidden: int = 256,
        p: int = 3,
        generator: torch.Generator | None = None,
    ) -> None:
        sizes = {"classes": classes, "channels": channels, "width": width, "hidden": hidden, "p": p}
        super().__init__(sizes, *eighteen(width), width, preact=False)
        features = self.head.in_features
        self.centre = nn.BatchNorm1d(features, affine=False)
        self.poly = PolyReLU(features, hidden, p=p)
        self.head = nn.Linear(hidden, classes)
        self.redraw_from(1, generator)

    def last_parts(self) -> list[nn.Module]:
        """What comes after the last layer."""
        return [*super().last_parts()[:-1], self.centre, self.poly, self.head]

    @staticmethod
    def draw(part: nn.Module, generator: torch.Generator | None) -> None:
        """PolyReLU uniform to SMALL sqrt(6/fan-in), the rest as other nets have it."""
        if isinstance(part, PolyReLU):
            bound = SMALL * (6 / part.in_features) ** 0.5
            nn.init.uniform_(part.weight, -bound, bound, generator=generator)
        elif isinstance(part, nn.BatchNorm1d):
            part.reset_running_stats()
        else:
            ResidualNet.draw(part, generator)

    def centred(self, x: Pixels) -> Float[Tensor, "n c"]:
        """What the PolyReLU neurons read."""
        features = self.features(x)
        with torch.autocast(features.device.type, enabled=False):
            return self.centre(features.to(self.poly.weight.dtype))

    def forward(self, x: Pixels) -> Float[Tensor, "n classes"]:
        """The logits."""
        c = self.centred(x)
        with torch.autocast(c.device.type, enabled=False):
            return self.head(self.poly(c))


register(
    PolyHeadResNet18,
    name="resnet18_poly_head",
    state=LayeredNet.state,
    load=load,
    hidden_weights="tacit.auditing.averaging:poly_head_neurons",
)
