"""What is trained, and the closed-form classifiers that theory predicts."""

from tacit.nets.closed_forms import (
    average_net,
    centre_net,
    decoupled_net,
    frei_net,
    linear_rule,
    prop48_net,
)
from tacit.nets.head import Head
from tacit.nets.kernel import PolynomialNet, TangentNet, polynomial_start, tangent_start
from tacit.nets.kinds import register
from tacit.nets.multiclass import MultiClassNet
from tacit.nets.poly_relu import PolyReLUNet, poly_relu_start
from tacit.nets.rules import BayesRule, Linear, NearestNeighbour
from tacit.nets.saved import load_net, save_net
from tacit.nets.symmetric import SymmetricNet, symmetric_start
from tacit.nets.tensors import TensorNet
from tacit.nets.thresholded import ThresholdedNet
from tacit.nets.two_layer import TwoLayerNet

__all__ = [
    "BayesRule",
    "Head",
    "Linear",
    "MultiClassNet",
    "NearestNeighbour",
    "PolyReLUNet",
    "PolynomialNet",
    "SymmetricNet",
    "TangentNet",
    "TensorNet",
    "ThresholdedNet",
    "TwoLayerNet",
    "average_net",
    "centre_net",
    "decoupled_net",
    "frei_net",
    "linear_rule",
    "load_net",
    "poly_relu_start",
    "polynomial_start",
    "prop48_net",
    "register",
    "save_net",
    "symmetric_start",
    "tangent_start",
]
