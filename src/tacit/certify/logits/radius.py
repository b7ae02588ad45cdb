r"""Certified radii of PolyReLU nets with one output a class, as written or as released, in l1, l2 and linf.

A point is proved at radius r if for every rival logit the margin is positive over the ball (no box; a box
only helps). The margin is one sum of signed powers (`logits_pairs`). Over an l2 or linf ball it is bounded
from below by parabolas and a trust-region problem (`logits_ball`), over an l1 ball at the vertices
(`logits_vertex`); where a line for each neuron is enough (CROWN, `linear_bound`), nothing more is done. The
radius is the largest one proved in a search; the rivals are taken in the order of their first-order distance,
so that after the nearest most need only one proof.

**Subclasses** (`labels`): the score of a class is log sum exp of its logits (li2025, Section 6.1). It is at
least any of them and at most the largest plus ln(how many), so a point of class y is safe where for one own
subclass j and all m of each other class z_j - z_m > ln(number of subclasses of m's class). j is the own
subclass with the largest logit.

The certificate is for the given weights in exact arithmetic; the bounds are computed in float64 with slack
taken off.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.attack.norms import L1, L2, Norm, known_norm
from tacit.base.checks import check_finite
from tacit.base.shapes import Rows
from tacit.certify.interval import Radii, at_least
from tacit.certify.logits.ball import Moments, ball_bound, no_moments
from tacit.certify.logits.pairs import EDGE, Pairs, linear_bound, pairs_of, turned
from tacit.certify.logits.vertex import vertex_bound
from tacit.errors import CallError
from tacit.nets import PolyReLUNet

TOLERANCE = 0.004  # relative, of the search
STEPS = 6  # answers a radius in the search, which keeps what it learnt
MOST_STEPS = 14  # at a radius that is asked for
HOPELESS = 1.0  # a bound below minus this many clean margins after EARLY steps: no more are tried
EARLY = 4
GROWTH = 1.5
ROUNDS = 80
LEAST_PART, MOST_PART = 0.3, 0.7  # of the bracket, where the next radius lies
ELEMENTS = 2**23  # numbers in the largest tensor
ON_A_GPU = 32  # times as many
SLACK = 1e-9  # taken off a radius
LONGEST = 1e100  # lengths beyond it, or below its inverse, cannot be squared safely


def logits_radius(
    net: PolyReLUNet,
    x: Rows,
    y: Int[Tensor, " n"],
    *,
    norm: float | str | Norm = 2,
    labels: Int[Tensor, " C"] | None = None,
) -> Radii:
    """No perturbation shorter than `lower` makes a point (x, y) be classified otherwise (ties break); float64.

    `lower` is 0 where the point is broken clean or nothing could be proved, inf where there is no other class;
    `upper` is inf, for nothing is attacked. With `labels`, logit k belongs to class labels[k], y are classes, and
    a class is scored by log sum exp of its logits.
    """
    norm = known_norm(norm)
    net, x = prepared(net, x, y, labels)
    own, rivals, tau = rivals_of(net, x, y, labels, norm)
    radius = torch.full_like(x[:, 0], torch.inf)
    for rank in range(rivals.shape[1]):
        rows = ((rivals[:, rank] >= 0) & (radius > 0)).nonzero().squeeze(1)
        for here, pairs in chunks(net, x, own, rivals[:, rank], tau, norm, rows):
            radius[here] = search(pairs, norm, radius[here] / pairs.unit) * pairs.unit
    return at_least(radius * (1 - SLACK))


def logits_certified(
    net: PolyReLUNet,
    x: Rows,
    y: Int[Tensor, " n"],
    radii: Float[Tensor, " R"],
    *,
    norm: float | str | Norm = 2,
    labels: Int[Tensor, " C"] | None = None,
) -> Bool[Tensor, "R n"]:
    """Whether each point is proved at each radius; what is proved at one is proved at all smaller ones.

    One bound for each radius and rival in place of a search, with more steps: cheaper than `logits_radius` for
    few radii.
    """
    norm = known_norm(norm)
    net, x = prepared(net, x, y, labels)
    if not bool((radii.isfinite() & (radii >= 0)).all()):
        raise CallError(f"radii={radii.tolist()}: radii are finite and not negative")
    own, rivals, tau = rivals_of(net, x, y, labels, norm)
    safe = torch.zeros(len(radii), len(x), dtype=torch.bool, device=x.device)
    done = torch.zeros_like(safe[:0].any(0))
    for i in radii.argsort(descending=True).tolist():
        left = ~done
        for rank in range(rivals.shape[1]):
            rows = ((rivals[:, rank] >= 0) & left).nonzero().squeeze(1)
            for here, pairs in chunks(net, x, own, rivals[:, rank], tau, norm, rows):
                r = float(radii[i]) / pairs.unit
                clean = pairs.margin()
                value = clean.clone()
                if float(radii[i]) > 0:
                    value, _ = bound(pairs, norm, r, clean, no_moments(pairs, norm), MOST_STEPS)
                left[here] = (clean > 0) & (value > 0)
        done = done | left
        safe[i] = done
    return safe


def prepared(
    net: PolyReLUNet, x: Rows, y: Int[Tensor, " n"], labels: Tensor | None
) -> tuple[PolyReLUNet, Rows]:
    """One finite net and its points in float64; labels that fit."""
    if net.w.dim() != 2:
        raise CallError("an ensemble is certified member by member: pass one net at a time")
    held = {"w": net.w, "v": net.v, "b": net.b, "centre": net.centre}
    for name, tensor in held.items():
        check_finite(f"the net's {name}", tensor, remedy="no radius can be given")
    check_finite("x", x)
    if len(x) != len(y):
        raise CallError(f"{len(x)} points with {len(y)} labels: one label a point is needed")
    if x.shape[1] != net.w.shape[1]:
        raise CallError(f"x has {x.shape[1]} columns: the net takes {net.w.shape[1]}")
    C = len(net.v)
    known = torch.arange(C, device=y.device) if labels is None else labels
    if len(known) != C:
        raise CallError(f"labels has {len(known)} entries: the net has {C} logits, one label each")
    strange = y[~torch.isin(y, known.to(y.device))]
    if len(strange):
        raise CallError(
            f"y holds {int(strange[0])}: the net's classes are {known.unique().tolist()}"
        )
    b, centre = (None if t is None else t.detach().double() for t in (net.b, net.centre))
    w, v = net.w.detach().double(), net.v.detach().double()
    x = x.detach().double()
    far = (x if centre is None else x - centre).norm(dim=1)
    if len(far) and not float(far.max()) < LONGEST:
        raise CallError(
            f"a point is {float(far.max()):.3g} away from the centre: rescale the data to below {LONGEST:g}"
        )
    if bool(((w.norm(dim=1) < 1 / LONGEST) & w.any(1)).any()):
        raise CallError(
            f"a row of w is shorter than {1 / LONGEST:g}: no radius can be given; rescale w and v"
        )
    return replace(net, w=w, v=v, b=b, centre=centre), x


def rivals_of(
    net: PolyReLUNet, x: Rows, y: Int[Tensor, " n"], labels: Int[Tensor, " C"] | None, norm: Norm
) -> tuple[Int[Tensor, " n"], Int[Tensor, "n R"], Float[Tensor, " C"]]:
    """The own logit, the rivals (nearest first, -1 where there are no more) and what each must stay below by."""
    C = len(net.v)
    group = torch.arange(C, device=x.device) if labels is None else labels.to(x.device)
    tau = (group.unsqueeze(1) == group).sum(1).to(x.dtype).log()
    mine = group == y.to(x.device).unsqueeze(1)
    z = net(x)
    own = z.masked_fill(~mine, -torch.inf).argmax(1)
    far = torch.empty_like(z)
    for k in range(C):
        pairs = pairs_of(net, x, own, torch.full_like(own, k), tau[k].expand(len(x)), norm)
        far[:, k] = first_order(pairs, norm) * pairs.unit
    finite = far.nan_to_num(nan=0.0, posinf=torch.finfo(far.dtype).max)
    order = finite.masked_fill(mine, torch.inf).argsort(1)  # the own class last
    most = int((~mine).sum(1).max()) if len(x) else 0
    return own, order.masked_fill(mine.gather(1, order), -1)[:, :most], tau


def chunks(
    net: PolyReLUNet,
    x: Rows,
    own: Int[Tensor, " n"],
    rival: Int[Tensor, " n"],
    tau: Float[Tensor, " C"],
    norm: Norm,
    rows: Int[Tensor, " k"],
) -> Iterator[tuple[Int[Tensor, " m"], Pairs]]:
    """The pairs of these rows, as many at a time as memory has room for; l2 in the span of the neurons."""
    h, D = net.w.shape
    basis = torch.linalg.qr(net.w.T)[0] if norm is L2 and h + 1 < D and len(rows) else None
    width = min(D, h + 1) if norm is L2 else D
    room = ELEMENTS * (ON_A_GPU if x.is_cuda else 1)
    for here in rows.split(max(1, room // (max(h, width) * width * (2 if norm is L1 else 1)))):
        k = rival[here]
        pairs = pairs_of(net, x[here], own[here], k, tau[k], norm)
        yield here, pairs if basis is None else turned(pairs, basis)


def first_order(pairs: Pairs, norm: Norm) -> Float[Tensor, " m"]:
    """margin / ||gradient||_dual, in units; 1 where that is not a positive number."""
    far = pairs.margin() / norm.dual(pairs.gradient())
    return torch.where((far > 0) & far.isfinite(), far, 1.0)


def bound(
    pairs: Pairs,
    norm: Norm,
    r: Float[Tensor, " m"],
    clean: Float[Tensor, " m"],
    moments: Moments,
    steps: int,
) -> tuple[Float[Tensor, " m"], Moments]:
    """A lower bound of F over balls of r > 0 (units), where not positive the best of `steps`; what it learnt."""
    r = r * (1 + EDGE)
    value = linear_bound(pairs, norm, r)
    moments = moments.at(torch.arange(len(r), device=r.device))
    for step in range(1 if norm is L1 else steps):
        open_ = ~(value > 0)
        if step >= EARLY:
            open_ &= value > -HOPELESS * clean
        here = open_.nonzero().squeeze(1)
        if not len(here):
            break
        some = pairs.at(here)
        if norm is L1:
            found = vertex_bound(some, r[here], clean[here])
        else:
            found, answer = ball_bound(some, norm, r[here], moments.at(here), clean[here])
            moments.put(here, answer)
        value[here] = torch.fmax(value[here], found)  # NaN proves nothing
    return value, moments


def search(pairs: Pairs, norm: Norm, limit: Float[Tensor, " m"]) -> Float[Tensor, " m"]:
    """The largest radius (units) found with a positive bound, at most `limit`."""
    clean = pairs.margin()
    low, low_value = torch.zeros_like(clean), clean.clone()
    high, high_value = torch.full_like(clean, torch.inf), torch.zeros_like(clean)
    trial = torch.where(limit.isfinite(), limit, first_order(pairs, norm))
    moments = no_moments(pairs, norm)
    here = (clean > 0).nonzero().squeeze(1)
    for _ in range(ROUNDS):
        if not len(here):
            break
        r = trial[here]
        value, learnt = bound(pairs.at(here), norm, r, clean[here], moments.at(here), STEPS)
        moments.put(here, learnt)
        safe = value > 0
        low[here[safe]], low_value[here[safe]] = r[safe], value[safe]
        high[here[~safe]], high_value[here[~safe]] = r[~safe], value[~safe]
        here = here[(low < limit)[here] & (high - low > TOLERANCE * low.clamp_min(EDGE))[here]]
        part = (low_value / (low_value - high_value)).nan_to_num(0.5).clamp(LEAST_PART, MOST_PART)
        between = low + part * (high - low)
        trial = torch.where(high.isfinite(), between, torch.minimum(low * GROWTH, limit))
    return torch.minimum(low, limit)
