"""Who was merged into whom: what lets figures show all h neurons of a merged net."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.train.flow.ensemble import Ensemble, Members
from tacit.train.flow.merge import Grouping, heaviest
from tacit.train.flow.neurons import FIXED, Neurons


@dataclass(frozen=True)
class Lineage(Ensemble):
    """For each of the h first neurons: its place now (-1: retired), its share of that place's mass (log), and how
    it stood when it was retired. `retired` is the squared norm of all retired weights, as a logarithm."""

    place: Int[Tensor, "E h"]
    log_share: Float[Tensor, "E h"]
    last_mass: Float[Tensor, "E h"]
    last_side: Float[Tensor, "E h"]
    last_cosines: Float[Tensor, "E h m"]
    retired: Members

    def all_neurons(
        self, neurons: Neurons, watch: Float[Tensor, "m D"]
    ) -> tuple[Float[Tensor, "E h"], Float[Tensor, "E h"], Float[Tensor, "E h m"]]:
        """log-mass, sign and cosines with the watched directions of all h neurons, as they are now."""
        at, here = self.place.clamp_min(0), self.place >= 0
        mass = neurons.log_mass.double().gather(1, at) + self.log_share
        side = neurons.side.double().gather(1, at)
        cosines = (neurons.u @ watch.mT).double()
        cosines = cosines.gather(1, at.unsqueeze(-1).expand(-1, -1, watch.shape[0]))
        return (
            torch.where(here, mass, self.last_mass),
            torch.where(here, side, self.last_side),
            torch.where(here.unsqueeze(-1), cosines, self.last_cosines),
        )


def unmerged(neurons: Neurons, watch: Float[Tensor, "m D"]) -> Lineage:
    """Before any merge: every neuron is its own group."""
    E, h = neurons.q.shape
    device = neurons.q.device
    zero = torch.zeros(E, h, dtype=torch.float64, device=device)
    cosines = torch.zeros(E, h, watch.shape[0], dtype=torch.float64, device=device)
    place = torch.arange(h, device=device).expand(E, h)
    return Lineage(place, zero, zero, zero, cosines, torch.full_like(zero[:, 0], -math.inf))


def after_merge(
    book: Lineage, before: Neurons, grouping: Grouping, watch: Float[Tensor, "m D"]
) -> Lineage:
    """After a merge of the neurons `before`."""
    mass, side, cosines = book.all_neurons(before, watch)
    at, here = book.place.clamp_min(0), book.place >= 0
    place = torch.where(here, grouping.group.gather(1, at), -1)
    leaving = (place < 0) & here
    log_mass = before.log_mass.double()
    group = torch.where(grouping.group >= 0, grouping.group, grouping.groups)
    top = heaviest(log_mass, group, grouping.groups)
    part = (log_mass - top.gather(1, group)).exp()
    total = torch.zeros_like(top).scatter_add_(1, group, part)
    # not log(part / total): a part below 1e-308 of the group must not become all of it
    share = log_mass - top.gather(1, group) - total.log().gather(1, group)
    share = torch.where(log_mass.isfinite(), share, 0.0)
    size = 2 * before.log_norm.double() + torch.where(
        before.kind != FIXED, torch.log1p(before.tilt.double().square()), 0.0
    )
    gone = torch.where((grouping.group < 0) & (before.sign != 0), size, -math.inf).logsumexp(1)
    return Lineage(
        place,
        torch.where(place >= 0, book.log_share + share.gather(1, at), book.log_share),
        torch.where(leaving, mass, book.last_mass),
        torch.where(leaving, side, book.last_side),
        torch.where(leaving.unsqueeze(-1), cosines, book.last_cosines),
        torch.logaddexp(book.retired, gone),
    )


def chained(first: Lineage, then: Lineage) -> Lineage:
    """One lineage for two flows in a row: the neurons that the first one left are those the second began with."""
    at, here = first.place.clamp_min(0), first.place >= 0
    place = torch.where(here, then.place.gather(1, at), -1)
    leaving = here & (place < 0)
    share = first.log_share + torch.where(here, then.log_share.gather(1, at), 0.0)
    return Lineage(
        place,
        share,
        torch.where(leaving, then.last_mass.gather(1, at) + first.log_share, first.last_mass),
        torch.where(leaving, then.last_side.gather(1, at), first.last_side),
        first.last_cosines,
        torch.logaddexp(first.retired, then.retired),
    )
