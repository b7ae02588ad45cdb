"""Torch modules for people with their own models."""

from tacit.nn.alexnet import AlexNet
from tacit.nn.poly_head import PolyHeadResNet18
from tacit.nn.poly_relu import PolyReLU
from tacit.nn.residual import PreActResNet, ResNet18

__all__ = ["AlexNet", "PolyHeadResNet18", "PolyReLU", "PreActResNet", "ResNet18"]
