"""Section 3's claim: F and F^(p) are realised by f_p, for any split of the neurons (and Remark 1).

p = 1, F:     w_j = lam_j mu_bar_s, v_j = s lam_j on I_s, sum_{I_+} lam^2 = sqrt(K1), sum_{I_-} lam^2 = sqrt(K2).
p >= 1, F^(p): w_j = lam_j mu_k, v_j = y_k lam_j on I_k, sum_{I_k} lam^2 = 1. All other neurons are zero.
Remark 1: permuting neurons, or (w_j, v_j) -> (g w_j, v_j / g) with g > 0, changes nothing.
"""

import numpy as np
import torch
import xarray as xr
from matplotlib.figure import Figure

from tacit.base.estimate import Certain
from tacit.base.shapes import Numbers
from tacit.data import ClusterMixture, min2024_mixture
from tacit.lab import Bench, Expected, Outcome
from tacit.nets import TwoLayerNet, average_net, centre_net
from tacit.papers.min2024.claim.settings import Realize

WHERE = "Section 3, Claim; Appendix C.0"
ROUNDING = 1e-12
SHOWN = 300


def run(config: Realize, bench: Bench) -> Outcome:
    """Compare f_p with F and F^(p) at random points, over random splits, rescalings, permutations."""
    mixture = min2024_mixture(config.D, config.K, config.K1, 0.5, bench.generator("centres"))
    x = mixture.sample(config.n, bench.generator("points")).x
    generator = bench.generator("splits")
    names = ["F", *(f"F^({p:g})" for p in config.p)]
    errors = np.zeros((len(names), config.splits, 2))
    scatter = np.zeros((len(names), 2, min(SHOWN, config.n)))
    nets = {}
    for row, name in enumerate(bench.steps(names, "classifiers")):
        p = 1.0 if name == "F" else config.p[row - 1]
        exact = average_net(mixture) if name == "F" else centre_net(mixture, p)
        truth = exact(x)
        for split in range(config.splits):
            net = spread_over(mixture, name == "F", p, config.h, generator)
            errors[row, split, 0] = relative_gap(net(x), truth)
            errors[row, split, 1] = relative_gap(disguised(net, generator)(x), truth)
        shown = scatter.shape[2]
        scatter[row] = np.stack([truth[:shown].numpy(), net(x[:shown]).numpy()])
        nets[name.replace("^", "")] = net
    data = xr.Dataset(
        {
            "error": (("classifier", "split", "form"), errors),
            "value": (("classifier", "side", "point"), scatter),
        },
        coords={
            "classifier": names,
            "form": ["split", "rescaled and permuted"],
            "side": ["closed form", "network"],
        },
    )
    judge = bench.claims(WHERE, source="formula", bar=f"ours: {ROUNDING:g}, rounding of sums of {config.h} terms",
                         regime="inside: any split, any h")  # fmt: skip
    listed = ", ".join(names[1:])
    made = tuple(
        judge(id, f"{text} (relative gap)", Expected(max=ROUNDING), any_size=True, where=where,
              measured=Certain(float(found.max()), "an identity, up to rounding", config.splits * config.n))
        for id, text, where, found in (
            ("F", "f_1 = F for every split of the neurons", WHERE, errors[0, :, 0]),
            ("Fp", f"f_p = F^(p) for every split of the neurons ({listed})", WHERE, errors[1:, :, 0]),
            ("remark1", "rescaling (w, v) -> (g w, v/g) and permuting neurons change nothing",
             "Section 3, Remark 1", errors[..., 1]),
        )
    )  # fmt: skip
    return Outcome(data, made, nets)


def spread_over(
    mixture: ClusterMixture, average: bool, p: float, h: int, generator: torch.Generator
) -> TwoLayerNet:
    """F or F^(p) spread over a random split of h neurons, some left zero, with random lam."""
    if average:
        sums = torch.stack([mixture.centres[mixture.labels * s > 0].sum(0) for s in (1, -1)])
        directions, signs = sums / sums.norm(dim=1, keepdim=True), mixture.labels[[0, -1]]
        mass = sums.norm(dim=1)  # sqrt(K1), sqrt(K2)
    else:
        directions, signs = mixture.centres, mixture.labels
        mass = torch.ones(mixture.K, dtype=torch.float64)
    groups = len(mass)
    # one neuron for each group, the rest anywhere or nowhere (group index `groups`: zero neurons)
    member = torch.randint(0, groups + 1, (h,), generator=generator)
    member[torch.randperm(h, generator=generator)[:groups]] = torch.arange(groups)
    share = torch.rand(h, generator=generator, dtype=torch.float64) + 1e-3
    total = torch.zeros(groups + 1, dtype=torch.float64).index_add(0, member, share)
    used = member < groups
    group = member.clamp_max(groups - 1)
    lam = torch.where(used, (mass[group] * share / total[group]).sqrt(), 0.0)
    return TwoLayerNet(lam.unsqueeze(1) * directions[group], signs[group] * lam, p=p)


def disguised(net: TwoLayerNet, generator: torch.Generator) -> TwoLayerNet:
    """The same function by Remark 1: neurons rescaled by g in [1/10, 10] and permuted."""
    h = len(net.v)
    g = 10 ** (2 * torch.rand(h, generator=generator, dtype=torch.float64) - 1)
    order = torch.randperm(h, generator=generator)
    return TwoLayerNet((g.unsqueeze(1) * net.w)[order], (net.v / g)[order], p=net.p)


def relative_gap(f: Numbers, truth: Numbers) -> float:
    """Largest difference over the largest value."""
    return float((f - truth).abs().max() / truth.abs().max())


def draw(data: xr.Dataset, config: Realize) -> Figure:
    """Values on the diagonal; gaps at rounding."""
    figure = Figure(figsize=(8.4, 3.8))
    left, right = figure.subplots(1, 2)
    names = [str(name) for name in data.classifier.values]
    low, high = float(data.value.min()), float(data.value.max())
    left.plot([low, high], [low, high], "--", color="0.3", linewidth=1, label="equal")
    # the first and the last: the others would lie on top of them
    for index, marker, size in ((0, "o", 6), (len(names) - 1, "^", 3.5)):
        truth, net = data.value.isel(classifier=index).values
        style = {"color": f"C{index}", "markersize": size, "alpha": 0.6}
        left.plot(truth, net, marker, label=pretty(names[index]), **style)
    left.set(xlabel="closed form", ylabel=f"network of {config.h} neurons")
    left.set_title("one function, many networks")
    left.legend()
    for index, name in enumerate(names):
        for form, marker, offset in (("split", "o", -0.12), ("rescaled and permuted", "^", 0.12)):
            gap = np.maximum(data.error.sel(classifier=name, form=form).values, 1e-18)
            label = form if index == 0 else None
            place = np.full(len(gap), index + offset)
            right.plot(place, gap, marker, color=f"C{index}", alpha=0.5, label=label)
    last = len(names) - 0.5
    for height, name in (
        (np.finfo(float).eps, "float64 epsilon"),
        (ROUNDING, "what the claim allows"),
    ):
        right.axhline(height, linestyle="--", color="0.3", linewidth=1)
        right.annotate(name, (last, height), ha="right", va="bottom")
    right.set(xlim=(-0.5, last), yscale="log", ylim=(3e-17, 1e-11))
    right.set_xticks(range(len(names)), [pretty(name) for name in names])
    right.set(ylabel="largest relative gap", title="every split, rescaling and order")
    right.legend(loc="center left", bbox_to_anchor=(0, 0.68))
    return figure


def pretty(name: str) -> str:
    """F^(3) as mathematics."""
    return "$F$" if name == "F" else f"$F^{{{name[2:]}}}$"
