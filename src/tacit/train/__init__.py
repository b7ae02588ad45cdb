"""How weights move: gradient flow, followed exactly, and the papers' descent loops."""

from tacit.train.descent.descend import Descended, Moment, descend
from tacit.train.descent.logits import LogitTraining, train_logits
from tacit.train.descent.perturbed import attacked, noisy
from tacit.train.flow.checks import FlowWarning
from tacit.train.flow.flow import Exactness, Flowed, gradient_flow
from tacit.train.flow.history import History
from tacit.train.flow.until import Until
from tacit.train.max_margin.every_pattern import GlobalMaxMargin, global_max_margin
from tacit.train.max_margin.two_neuron import MaxMargin, two_neuron_max_margin

__all__ = [
    "Descended",
    "Exactness",
    "FlowWarning",
    "Flowed",
    "GlobalMaxMargin",
    "History",
    "LogitTraining",
    "MaxMargin",
    "Moment",
    "Until",
    "attacked",
    "descend",
    "global_max_margin",
    "gradient_flow",
    "noisy",
    "train_logits",
    "two_neuron_max_margin",
]
