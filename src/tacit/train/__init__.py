"""How weights move: gradient flow, followed exactly, and the papers' descent loops."""

from tacit.train.deep.fit import Fitted, Watch, fit
from tacit.train.deep.recipe import Recipe
from tacit.train.descent.descend import Descended, Moment, descend
from tacit.train.descent.logits import LogitTraining, train_logits
from tacit.train.descent.perturbed import attacked, noisy
from tacit.train.flow.checks import FlowWarning
from tacit.train.flow.flow import Exactness, Flowed, gradient_flow
from tacit.train.flow.history import History
from tacit.train.flow.until import Until
from tacit.train.max_margin.every_pattern import GlobalMaxMargin, global_max_margin
from tacit.train.max_margin.several_neurons import KktPoint, several_neuron_max_margin
from tacit.train.max_margin.two_neuron import MaxMargin, two_neuron_max_margin
from tacit.train.purify.attackers import (
    Attacker,
    attacker_of,
    fgm_attacker,
    pgd_attacker,
    random_attacker,
    universal_attacker,
)
from tacit.train.purify.stages import Stage
from tacit.train.purify.training import Purified, Snapshot, set_batches, train_symmetric

__all__ = [
    "Attacker",
    "Descended",
    "Exactness",
    "Fitted",
    "FlowWarning",
    "Flowed",
    "GlobalMaxMargin",
    "History",
    "KktPoint",
    "LogitTraining",
    "MaxMargin",
    "Moment",
    "Purified",
    "Recipe",
    "Snapshot",
    "Stage",
    "Until",
    "Watch",
    "attacked",
    "attacker_of",
    "descend",
    "fgm_attacker",
    "fit",
    "global_max_margin",
    "gradient_flow",
    "noisy",
    "pgd_attacker",
    "random_attacker",
    "set_batches",
    "several_neuron_max_margin",
    "train_logits",
    "train_symmetric",
    "two_neuron_max_margin",
    "universal_attacker",
]
