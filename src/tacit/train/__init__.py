"""How weights move: gradient flow, followed exactly, and the papers' descent loops."""

from tacit.train.checks import FlowWarning
from tacit.train.descent import Descended, Moment, descend
from tacit.train.flow import Exactness, Flowed, gradient_flow
from tacit.train.history import History
from tacit.train.until import Until

__all__ = [
    "Descended",
    "Exactness",
    "FlowWarning",
    "Flowed",
    "History",
    "Moment",
    "Until",
    "descend",
    "gradient_flow",
]
