"""AlexNet for images of 32 x 32, whose first filters are large enough to look at (allenzhu2020, Section 8.1).

| layer | filters                | then                |
| ----- | ---------------------- | ------------------- |
| 1     | 64 of 11 x 11, stride 4 | ReLU, 2 x 2 maximum |
| 2     | 192 of 5 x 5           | ReLU, 2 x 2 maximum |
| 3     | 384 of 3 x 3           | ReLU                |
| 4     | 256 of 3 x 3           | ReLU                |
| 5     | 256 of 3 x 3           | ReLU, 2 x 2 maximum |

and a linear head: the sizes of the implementation that the paper names in footnote 13. There is no batch norm.
`width` counts the first layer's filters; the others keep their ratio to it.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import max_pool2d

from tacit.nets.kinds import register
from tacit.nn.layered import LayeredNet, Maps, Pixels, load

POOLED = (1, 2, 5)  # layers before a maximum


class AlexNet(LayeredNet):
    """Five convolutions with biases, and a linear head."""

    def __init__(
        self,
        classes: int = 10,
        channels: int = 3,
        width: int = 64,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__({"classes": classes, "channels": channels, "width": width})
        wide = [width, 3 * width, 6 * width, 4 * width, 4 * width]
        self.layers = nn.ModuleList(
            [
                nn.Conv2d(channels, wide[0], 11, 4, 5),
                nn.Conv2d(wide[0], wide[1], 5, 1, 2),
                *(nn.Conv2d(wide[k - 1], wide[k], 3, 1, 1) for k in (2, 3, 4)),
            ]
        )
        self.head = nn.Linear(wide[4], classes)
        self.redraw_from(1, generator)

    @property
    def convolutions(self) -> list[nn.Conv2d]:
        """All five."""
        return list(self.layers)  # type: ignore[arg-type]

    def parts_of(self, layer: int) -> list[nn.Module]:
        """The convolution."""
        return [self.layers[layer - 1]]

    def output_of(self, layer: int, x: Pixels) -> Maps:
        """What convolution `layer` puts out; what comes later is not run."""
        self.check_layer(layer)
        maps = self.standard(x)
        for number in range(1, layer):
            maps = self.passed_on(number, self.layers[number - 1](maps))
        return self.layers[layer - 1](maps)

    @staticmethod
    def passed_on(layer: int, maps: Maps) -> Maps:
        """What the next layer sees; a map of one pixel has no maximum to take, as small images have."""
        maps = maps.relu()
        return max_pool2d(maps, 2) if layer in POOLED and min(maps.shape[2:]) > 1 else maps

    def features(self, x: Pixels) -> Float[Tensor, "n c"]:
        """The last maps, which are of one pixel for images of 32 x 32; else their mean over positions."""
        last = len(self.layers)
        return self.passed_on(last, self.output_of(last, x)).mean((2, 3))

    @staticmethod
    def draw(part: nn.Module, generator: torch.Generator | None) -> None:
        """Uniform to 1/sqrt(fan-in), weights and biases, as torch draws them: without norms scale matters."""
        if isinstance(part, (nn.Conv2d, nn.Linear)):
            assert part.bias is not None
            bound = part.weight[0].numel() ** -0.5
            for tensor in (part.weight, part.bias):
                nn.init.uniform_(tensor, -bound, bound, generator=generator)


register(AlexNet, name="alexnet", state=LayeredNet.state, load=load)
