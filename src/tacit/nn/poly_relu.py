"""The PolyReLU layer (min2024, Section 2) as a torch module."""

from jaxtyping import Float
from torch import Tensor, device, dtype, empty, nn

from tacit.errors import CallError
from tacit.nets import PolyReLUNet


class PolyReLU(nn.Module):
    r"""relu(<w_j, x>)^p / ||w_j||^(p-1) for each of `out_features` neurons: a linear layer and its activation.

    With `normalize_input` it is also divided by ||x||^(p-1) (the layer as the authors of min2024 released it), so
    that it is 1-homogeneous in x like a ReLU layer: any scale of the inputs will do. Without it (as the paper
    writes it) the inputs should be centred and of length about 1. p = 1 is a ReLU layer without bias. It is the
    hidden layer of `tacit.nets.PolyReLUNet`; `weight` (out_features, in_features) starts Kaiming uniform.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        p: float = 3.0,
        normalize_input: bool = True,
        device: device | str | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        if in_features < 1 or out_features < 1:
            raise CallError(
                f"in_features={in_features}, out_features={out_features}: both are at least 1"
            )
        self.in_features, self.out_features = in_features, out_features
        self.p, self.normalize_input = float(p), normalize_input
        self.weight = nn.Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        self.reset_parameters()
        self.layer()  # refuses p < 1 now and not at the first batch

    def reset_parameters(self) -> None:
        """Uniform in +-sqrt(6/in_features) (He et al. 2015)."""
        nn.init.kaiming_uniform_(self.weight, nonlinearity="relu")

    def layer(self) -> PolyReLUNet:
        """The weights as the hidden layer of a net that has no outputs."""
        nothing = self.weight.new_empty(0, self.out_features)
        return PolyReLUNet(self.weight, nothing, p=self.p, normalize_input=self.normalize_input)

    def forward(self, x: Float[Tensor, "*x D"]) -> Float[Tensor, "*x h"]:
        """What the neurons pass on; any leading dimensions."""
        rows = x.reshape(-1, self.in_features)
        return self.layer().hidden(rows).reshape(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        """As torch's own layers are shown."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, p={self.p:g}, "
            f"normalize_input={self.normalize_input}"
        )
