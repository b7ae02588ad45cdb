"""How weights move: gradient flow, followed exactly, and the papers' descent loops."""

from tacit.train.checks import FlowWarning
from tacit.train.descent import Descended, Moment, descend
from tacit.train.flow import Exactness, Flowed, gradient_flow
from tacit.train.history import History
from tacit.train.logits import LogitTraining, train_logits
from tacit.train.max_margin import MaxMargin, two_neuron_max_margin
from tacit.train.max_margin_global import GlobalMaxMargin, global_max_margin
from tacit.train.perturbed import attacked, noisy
from tacit.train.until import Until

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
