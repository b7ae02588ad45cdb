"""A trained net as the few bundles that its neurons have become, with what that changes.

Thousands of neurons that SGD has turned to ten directions are ten neurons to a certificate, which is exact for so
few and slow for so many. How far the function moves is bounded, not estimated (`pieces`).
"""

from dataclasses import dataclass

from tacit.measure.distance.pieces import merge_pieces, net_pieces
from tacit.nets import TwoLayerNet


@dataclass(frozen=True)
class Bundled:
    """`net` has a neuron of unit length for each bundle.

    `error` >= sup_{|x| <= 1} |net(x) - f(x)| / sum_j |v_j| ||w_j||.
    """

    net: TwoLayerNet
    error: float


def bundled(net: TwoLayerNet) -> Bundled:
    """Neurons of one sign within .2 radians of a heavier one become one; the faintest 1e-5 of the mass goes."""
    pieces, total = net_pieces(net, net)
    few, error = merge_pieces(pieces, coarse=True)
    heard = few.f != 0
    return Bundled(TwoLayerNet(few.u[heard], total * few.f[heard], p=net.p), error)
