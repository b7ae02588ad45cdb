r"""One net for all cells of the diagram, its training and its certificate.

    f_c(x) = (1/h) sum_r relu(<w_cr, x>)^p / ||w_cr||^(p-1),    c = 1..C labels, cross-entropy

p = 1 is li2025's net: with 2 labels f_1 - f_2 under the logistic loss (Section 3.2, no biases), with k labels
that of Section 4.2. A label belongs to a class, and the class of the largest logit is the answer: the limit of
li2025's sum of probabilities for large logits. It is certified as a head whose logits are `SHARP` times larger,
so that the sum of exponentials of a class is its largest logit up to ln(C/2)/SHARP.

Points are in units of sqrt(d), so that f is of the size of w at every p; steps are in units of h, so that the
logits move as fast whatever the number of labels.

**Small steps first.** Directions settle while norms are small: by d u / d log ||w||. A large first step would
fix a share 1/T of a neuron in the direction of its random start, and neurons of one cluster would never be
parallel. The steps of the first half grow geometrically, by `GROWTH` every `STAGE` steps.
"""

import math
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.attack.shortest.minimal import minimal
from tacit.base.shapes import Numbers, Rows
from tacit.certify import Radii, radius
from tacit.certify.logits.radius import logits_radius
from tacit.nets import MultiClassNet, TwoLayerNet
from tacit.nets.head import Head, head_of
from tacit.papers.li2025.phase.settings import Phase
from tacit.train import descend

SHARP = 1e3
STAGE = 10  # steps of one size
GROWTH = 1.6


def start(config: Phase, p: float, labels: int, generators: list[torch.Generator]) -> MultiClassNet:
    """An ensemble in float32, a member for each generator."""
    h = config.neurons // labels
    size = config.init / math.sqrt(config.d)
    w = [size * torch.randn(labels, h, config.d, generator=g) for g in generators]
    return MultiClassNet(torch.stack(w), signs(labels), p)


def signs(labels: int) -> Float[Tensor, " C"]:
    """The class of each label: the first half is positive, as the clusters are."""
    return torch.tensor([1.0] * (labels // 2) + [-1.0] * (labels // 2))


def train(
    config: Phase, net: MultiClassNet, x: Float[Tensor, "e n d"], z: Int[Tensor, "e n"]
) -> tuple[MultiClassNet, Float[Tensor, " e"]]:
    """All members at once; the nets and their mean losses."""
    h = net.w.shape[-2]
    early = config.T // 2
    stages = math.ceil(early / STAGE)
    for stage in range(stages):
        step = config.eta * h * GROWTH ** (stage - stages)
        steps = min(STAGE, early - stage * STAGE)
        net = descend(net, x, z, step=step, steps=steps, loss="logistic").net
    late = config.T - early
    done = descend(net, x, z, step=config.eta * h, steps=late, loss="logistic", record=[late])
    return done.net, done.history[-1].loss


def decided(net: MultiClassNet) -> Head:
    """One member as a classifier of the two classes (0: positive) by its largest logit."""
    return head_of(replace(net, w=SHARP * net.w))  # f is 1-homogeneous in w


def radii_of(net: MultiClassNet, x: Rows, y: Numbers) -> Radii:
    """From certificate to attack. 2 labels are attacked as one sum, whose attack knows where neurons are off."""
    head, classes = decided(net), (y < 0).long()
    if not head.whole:
        return radius(head, x, classes)
    return Radii(logits_radius(head.net, x, classes).lower, minimal(flat_of(net), x, y).radius)


def flat_of(net: MultiClassNet) -> TwoLayerNet:
    """One member as a sum over its neurons, signed by class: with 2 labels f_1 - f_2 itself."""
    h = net.w.shape[-2]
    return TwoLayerNet(net.w.flatten(0, 1), net.labels.repeat_interleave(h) / h, p=net.p)
