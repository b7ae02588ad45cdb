"""min2024.after_thm2: trajectories against an integrator of its own; its claims in made-up worlds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.integrate import solve_ivp

from benches import new_bench, verdicts
from tacit.errors import CallError
from tacit.papers.min2024.after_thm2.exhibit import GROUPS, SIGNS, claims, follow, starts
from tacit.papers.min2024.after_thm2.settings import Trajectories

SMALL = Trajectories(D=12, K=4, K1=2, p=(1.0, 3.0), n=8, times=6)


def drawn(config: Trajectories = SMALL) -> torch.Tensor:
    return starts(config, torch.Generator().manual_seed(0))


def test_neighbours_start_on_their_side_of_the_balls_edge():
    """Of either class: the positive one has 6 centres, the negative one the last 4."""
    config = Trajectories(n=50)
    w = drawn(config)
    for side, own in ((0, slice(0, 6)), (1, slice(6, 10))):
        u = w[side] / w[side].norm(dim=-1, keepdim=True)
        sits_around_its_own(u, own, [k for k in range(10) if k not in range(own.start, own.stop)])


def sits_around_its_own(u: torch.Tensor, own: slice, others: list[int]) -> None:
    average = u[..., own].sum(-1) / math.sqrt(own.stop - own.start)
    for group, low, high in (
        ("inside", 0.95, 1),
        ("outside", 0.94, 0.95),
        ("outside, span", 0.94, 0.95),
    ):
        cosines = average[GROUPS.index(group)]
        assert ((low < cosines) & (cosines < high)).all()
    assert (u[GROUPS.index("centre"), :, own.start] > 0.95).all()
    assert (u[GROUPS.index("outside, span")][:, [*others, -1]].abs() < 1e-12).all()
    assert (u[GROUPS.index("outside"), :, -1] > 0.01).all()


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_directions_follow_the_field_as_another_integrator_does(p: float):
    """u' = sign(v) P sum_k y_k p relu(z_k)^(p-1) x_k: Lemma 1 at eps -> 0, with classes of 3 and 2 centres."""
    config = replace(SMALL, K=5, K1=3)
    w0 = drawn(config)
    found = follow(config, w0, p)
    K, K1 = config.K, config.K1
    labels = np.where(np.arange(K) < K1, 1.0, -1.0)
    T = float(found["T"])
    for side, group, neuron in ((0, 0, 1), (0, 2, 0), (0, 4, 3), (1, 0, 1), (1, 2, 0), (1, 4, 3)):
        u0 = (w0[side, group, neuron] / w0[side, group, neuron].norm()).numpy()
        own = slice(0, K1) if side == 0 else slice(K1, K)

        def field(_: float, u: np.ndarray, side: int = side) -> np.ndarray:
            z = u[:K]
            pull = np.append(
                (1 - 2 * side) * labels * p * (z > 0) * np.maximum(z, 0) ** (p - 1), 0.0
            )
            return pull - (pull @ u) * u

        end = solve_ivp(field, (0, T), u0, rtol=1e-9, atol=1e-10, max_step=T / 200).y[:, -1]
        at = found.isel(sign=side, group=group, neuron=neuron, frame=config.times - 1)
        length = math.sqrt(own.stop - own.start)
        assert float(at.average) == pytest.approx(end[own].sum() / length, abs=5e-3)
        assert float(at.centre) == pytest.approx(end[own].max(), abs=5e-3)


def world(**told: float) -> xr.Dataset:
    """Trajectories that do what the paper says, but for what is told: the end's cosine of a group, by T."""
    config = Trajectories(n=40, p=(1.0, 3.0), times=2)
    edge = 1 - config.delta
    average = np.zeros((2, 4, len(GROUPS), config.n))
    centre = np.zeros_like(average)
    ends = {
        "random": (0.1, told.get("random", 0.05)),
        "inside": (edge + 0.001, told.get("inside", edge + 0.01)),
        "outside": (edge - 0.001, told.get("outside", 0.5)),
        "outside, span": (edge - 0.001, told.get("span", 0.5)),
        "centre": (edge + 0.001, told.get("centre", 0.99)),
    }
    for g, group in enumerate(GROUPS):
        values = np.array([ends[group][0], ends[group][1], ends[group][1], ends[group][1]])
        (centre if group == "centre" else average)[:, :, g] = values[None, :, None]
    # past T a random neuron finds the average at p = 1, a centre at p = 3
    average[0, -1, 0], centre[1, -1, 0] = told.get("late", 0.9), told.get("late", 0.9)
    centre[0, -1, 0], average[1, -1, 0] = 0.4, 0.4
    dims = ("p", "frame", "group", "neuron")
    one = xr.Dataset(
        {
            "average": (dims, average),
            "centre": (dims, centre),
            "time": (("p", "frame"), np.tile([0.0, 1.0, 2.0, 3.0], (2, 1))),
            "T": (("p",), [1.0, 1.0]),
        },
        coords={"p": [1.0, 3.0], "group": list(GROUPS)},
    )
    return xr.concat([one, one], xr.Variable("sign", list(SIGNS)), data_vars=["average", "centre"])


def judged(data: xr.Dataset) -> dict[str, str]:
    config = Trajectories(n=40, p=(1.0, 3.0), times=2)
    return verdicts(tuple(claims(data, config, new_bench(scale="laptop"))))


def test_in_the_papers_world_everything_holds():
    assert set(judged(world()).values()) == {"holds", "as predicted"}


@pytest.mark.parametrize(
    ("told", "claim"),
    [
        ({"inside": 0.9}, "average.p1"),
        ({"outside": 0.96}, "average.p3"),
        ({"random": 0.96}, "random.ball"),
        ({"random": 0.2}, "random.closer"),
        ({"centre": 0.9}, "centre.p3"),
        ({"span": 0.96}, "average.span"),
        ({"late": 0.1}, "favoured.p1"),
        ({"late": 0.1}, "favoured.p3"),
        ({"late": 0.4}, "favoured.p1"),  # as near to a centre is not nearer, to either
        ({"late": 0.4}, "favoured.p3"),
        ({"late": 0.4004}, "favoured.p1"),
        ({"late": 0.4004}, "favoured.p3"),
    ],
)
def test_each_claim_turns_in_a_world_of_its_own(told: dict[str, float], claim: str):
    here = judged(world(**told))
    for id in (claim, f"negative.{claim}"):
        assert here[id] in ("differs", "not as predicted")
    # what the negative neurons do is no business of the positive ones, and the other way round
    for liar, prefix in (("+", ""), ("-", "negative.")):
        data = world()
        data = xr.where(data.sign == liar, world(**told), data, keep_attrs=True)
        data = data.assign(time=world().time, T=world()["T"])
        wrong = {id for id, v in judged(data).items() if v not in ("holds", "as predicted")}
        assert prefix + claim in wrong
        assert all(id.startswith("negative.") == bool(prefix) for id in wrong)


@pytest.mark.parametrize(
    ("group", "end", "claim"),
    [("outside", 0.96, "average.p3"), ("random", 0.96, "random.ball"), ("random", 0.2, "random.closer"),
     ("centre", 0.9, "centre.p3"), ("outside, span", 0.96, "average.span")],
)  # fmt: skip
@pytest.mark.parametrize(("sign", "prefix"), [("+", ""), ("-", "negative.")])
def test_one_neuron_at_one_of_several_powers_refutes_a_claim(
    group: str, end: float, claim: str, sign: str, prefix: str
):
    """The claims are of every start at every p: at p = 4 the first of forty leaves, or enters."""
    config = Trajectories(n=40, p=(1.0, 3.0, 4.0), times=2)
    data = world()
    data = xr.concat([data, data.isel(p=[1]).assign_coords(p=[4.0])], "p")
    name = "centre" if group == "centre" else "average"
    data[name].loc[{"p": 4.0, "sign": sign, "group": group, "frame": 1, "neuron": 0}] = end
    made = {c.id: c for c in claims(data, config, new_bench(scale="laptop"))}
    claim = prefix + claim
    assert made[claim].verdict in ("differs", "not as predicted")
    mine = (claim, f"{prefix}random.closer")
    others = {c.verdict for id, c in made.items() if id not in mine}
    assert others <= {"holds", "as predicted"}
    if claim.endswith("average.p3"):
        assert "2% of these neighbours enter" in made[claim].reason


def test_random_starts_have_no_side():
    for first in drawn()[:, 0]:
        assert abs(float(first[:, :-1].mean())) < 4 / math.sqrt(3 * SMALL.D * first[:, :-1].numel())


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"K1": 1}, "with one centre it is the average"),
        ({"K1": 9}, "with one centre it is the average"),
        ({"K1": 2, "delta": 0.07}, "delta=0.07"),
        ({"D": 10}, "neighbours outside the span are followed"),
        ({"delta": 0.2}, "delta=0.2"),
        ({"eps": 0.1}, "the statements are for a small start"),
        ({"n": 2}, "fewer decide nothing"),
    ],
)
def test_refusals(settings: dict, line: str):
    with pytest.raises(CallError) as error:
        Trajectories(**settings)
    assert line in str(error.value)
    assert "\n" not in str(error.value)
