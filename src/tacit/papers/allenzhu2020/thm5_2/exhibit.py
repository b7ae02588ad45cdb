r"""Theorem 5.2: w_i = sum_{j in N_i} alpha_ij w*_j M_j + sum_{j not in N_i} beta_ij w*_j M_j after training.

N_i are the features that neuron i leans to at the start (S_pot of Definition B.1, Remark C.3), and the one that
it has won. beta is read for all neurons, as the theorem has it, and for those that fire. The picture shows a
neuron whose mixture is from 1 to 2 k/d: few hold more, and many much less.

**Section 6.2.** With v_i the mixture of a neuron that fires, over its alpha: what v_i sees on points, |<v_i, x>|
in units of (k/d) ||x||, and along M w*, <v_i, M w*>/||M w*|| in units of k/sqrt(d).

**Lemma E.2.** sum <w_i, M w*> over the surely lucky neurons, in units of k d.
"""

from functools import partial

import torch
import xarray as xr
from torch import Tensor

from tacit.lab import Bench, Outcome
from tacit.measure.purification.lottery import lottery_constants, tickets
from tacit.measure.purification.mixture import coordinates, mixture
from tacit.nets import SymmetricNet
from tacit.papers.allenzhu2020._shared.measured import alive, of_each, strongest
from tacit.papers.allenzhu2020._shared.nets import fresh_points, start_of, trained, world
from tacit.papers.allenzhu2020.thm5_2.claims import claims
from tacit.papers.allenzhu2020.thm5_2.figure import draw as draw
from tacit.papers.allenzhu2020.thm5_2.settings import Mixed

QUANTILE = 0.99
ONE_FEATURE = 0.5  # of ||w_i||^2 in one coordinate: the neuron is of that feature


def run(config: Mixed, bench: Bench) -> Outcome:
    """Read the clean nets, and the purified ones for the picture."""
    seeds = bench.seeds(config.repeats)
    data = bench.part("mixtures", partial(mixtures, config, bench, seeds))
    return Outcome(data, claims(data, config, bench))


def mixtures(config: Mixed, bench: Bench, seeds: list[int]) -> xr.Dataset:
    """All nets; one neuron's coordinates of the first seed alone."""
    courses = {"clean": config.clean, "pure": config.purified()}
    dims = {"alpha": ("neuron",), "dense": ("neuron",)}
    data = of_each(config, bench, seeds, courses, partial(one_net, config, bench), dims)
    nets, model = trained(config, bench, seeds[:1], courses), world(config, bench, seeds[0])
    both = [nets[name, seeds[0]] for name in courses]
    (i,) = strongest(model, both[0], both[1], 1, most=2.0).tolist()
    rows = [coordinates(net.w[i : i + 1], model.M)[0] * model.w_star.sign() for net in both]
    return data.assign(coordinates=(("course", "feature"), torch.stack(rows).numpy()))


def one_net(
    config: Mixed, bench: Bench, name: str, seed: int, net: SymmetricNet
) -> dict[str, Tensor | float]:
    """The theorem's quantities of one net."""
    model = world(config, bench, seed)
    start = start_of(config, bench, seed, 0, config.clean[0])
    constants = lottery_constants(config.m, config.d)
    lots = tickets(start.w, model.M, model.w_star, config.init, constants)
    found, who = mixture(net.w, model.M, model.w_star), alive(config, bench, seed, net)
    beside = ~lots.pot & (found.beta != 0)  # beta has a 0 in the place of the feature that was won
    beta = torch.where(beside, found.beta, 0.0)
    along = net.w.double() @ (model.M @ model.w_star)
    table = coordinates(net.w, model.M)
    # one feature holds most of the neuron, and no other is in N_i
    share = table.square().amax(1) / table.square().sum(1)
    alone = who & (lots.pot.sum(1) <= 1) & (share >= ONE_FEATURE) & (found.alpha > ONE_FEATURE)
    here = found.alpha[who].clamp_min(1e-9)
    v = (found.beta[who] * model.w_star / here.unsqueeze(1)) @ model.M.T
    x = fresh_points(config, bench, seed, config.points).x.double()
    unit = config.k / config.d
    seen = (x @ v.T).abs() / (unit * x.norm(dim=1, keepdim=True))
    dense = model.M @ model.w_star
    met = v @ (dense / dense.norm()) / (config.k / config.d**0.5)
    whole = {
        key: torch.where(who, value, torch.nan)
        for key, value in (("alpha", found.alpha), ("dense", found.dense))
    }
    return {
        **whole,
        "all_mean": float(beta.sum() / beta.numel()) / unit,
        "fire_mean": float(beta[who].sum() / beta[who].numel()) / unit,
        "relative": float(found.dense[who].mean() / found.alpha[who].mean()) / unit,
        "largest": float(beta[who].abs().max()) / unit,
        "within": float((beta[who].abs() < 3 * unit).double().mean()),
        "most": float(lots.pot.sum(1).max()),
        "single": float(alone.sum()) / config.d,
        "sure_sum": float(along[lots.sure.any(1)].sum()) / (config.k * config.d),
        "sure_count": float(lots.sure.any(1).sum()),
        "positive": float((along[who] > 0).double().mean()),
        "least": float(along.min()),
        "reach": float(net.w.double().norm(dim=1).max() * dense.norm()),
        "seen": float(torch.quantile(seen.flatten()[:: max(1, seen.numel() // 10**6)], QUANTILE)),
        "met": float(met.mean()),
        "alive": float(who.double().mean()),
    }  # fmt: skip
