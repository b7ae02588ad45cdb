"""One base for the tensors of nets, one registration for each kind."""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tacit.attack import minimal
from tacit.attack.ball.task import task_of
from tacit.attack.target import TorchTarget, target_of
from tacit.base.files import write_tensors
from tacit.base.sources import _reached
from tacit.certify import radius
from tacit.certify.interval import exactly
from tacit.data import min2024_mixture
from tacit.errors import CallError, RunError
from tacit.nets import (
    BayesRule,
    Head,
    Linear,
    MultiClassNet,
    NearestNeighbour,
    PolyReLUNet,
    TwoLayerNet,
    average_net,
    linear_rule,
    load_net,
    prop48_net,
    register,
    save_net,
)
from tacit.nets.kinds import FACETS, KINDS, asked_of, imported, kind_of
from tacit.nn import PolyReLU
from tacit.train import descend

MIXTURE = min2024_mixture(D=6, K=4, K1=2, alpha=0.3)
DATA = MIXTURE.sample(12, torch.Generator().manual_seed(0), equal_counts=True)
LOGITS = PolyReLUNet(
    torch.randn(5, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64),
    torch.randn(3, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64),
    torch.zeros(3, dtype=torch.float64),
    p=2.0,
    centre=torch.full((6,), 0.1, dtype=torch.float64),
)
NETS = [
    average_net(MIXTURE, 0.1, 0.2),
    prop48_net(MIXTURE),
    linear_rule(MIXTURE),
    BayesRule(MIXTURE),
    NearestNeighbour(DATA.x, DATA.y),
    LOGITS,
    Head(LOGITS, torch.tensor([0, 1, 0])),
]


def torch_net(hidden: int = 8, outputs: int = 3) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(6, hidden), nn.ReLU(), nn.Sequential(nn.Dropout(), nn.Linear(hidden, outputs))
        ).eval()


@pytest.fixture
def fresh() -> Iterator[None]:
    before = dict(KINDS)
    yield
    KINDS.clear()
    KINDS.update(before)


@pytest.mark.parametrize("net", NETS, ids=lambda net: type(net).__name__)
def test_a_net_changes_its_type_and_comes_back_from_a_file(net: Any, tmp_path: Path) -> None:
    half = net.to("cpu", torch.float32)
    assert {t.dtype for t in half.tensors().values()} - {torch.int64} == {torch.float32}
    back = half.double()
    for name, tensor in back.tensors().items():
        assert torch.allclose(tensor, net.tensors()[name])
    assert torch.equal(net.to(torch.float64)(DATA.x), net(DATA.x))
    save_net(tmp_path / "net", net)
    again = load_net(tmp_path / "net")
    assert type(again) is type(net)
    assert torch.equal(again(DATA.x), net(DATA.x))
    again.check_finite("nothing")


def test_the_dimensions_of_an_ensemble_are_those_of_the_annotations() -> None:
    two = TwoLayerNet(torch.randn(2, 3, 5, 6), torch.randn(2, 3, 5), torch.randn(2, 3, 5))
    assert (two.ensemble, two.inputs) == ((2, 3), 6)
    assert [member.ensemble for member in two.members()] == [(3,), (3,)]
    assert torch.equal(two.members()[1].members()[2].b, two.b[1, 2])
    assert len(average_net(MIXTURE).members()) == 1
    many = MultiClassNet(torch.ones(4, 2, 3, 6), torch.tensor([1.0, -1.0]))
    assert many.ensemble == (4,)
    assert torch.equal(many.members()[0].labels, many.labels)
    assert (LOGITS.ensemble, Linear(torch.ones(7)).inputs) == ((), 7)
    assert Head(LOGITS, torch.tensor([0, 1, 2])).inputs == 6


def test_nan_in_a_net_is_told_by_the_name_of_its_tensor() -> None:
    for net, words in (
        (
            dataclasses.replace(LOGITS, b=torch.full((3,), torch.nan).double()),
            "PolyReLUNet.b holds",
        ),
        (Linear(torch.full((6,), torch.inf).double()), "Linear.u holds NaN or inf: no radius"),
        (Head(dataclasses.replace(LOGITS, v=LOGITS.v / 0), torch.arange(3)), "Head.net.v holds"),
    ):
        with pytest.raises(CallError, match=words):
            radius(net, DATA.x, DATA.y)


def test_every_facet_that_is_registered_can_be_imported() -> None:
    kind_of(nn.Identity())
    for kind in list(KINDS.values()):
        for name, facet in kind.facets.items():
            assert name in FACETS
            assert not isinstance(facet, str) or callable(imported(facet))


def test_a_damaged_file_of_a_rule_is_one_line(tmp_path: Path) -> None:
    tensors, meta = BayesRule(MIXTURE).state()
    short = {**tensors, "mixture.labels": torch.ones(2).double()}
    less = {name: tensor for name, tensor in tensors.items() if name != "mixture.weights"}
    for held, told, words in (
        (short, meta, r"tensor 'labels' is torch.float64 of shape \(2,\)"),
        (less, meta, "without its tensor 'mixture.weights'"),
        (tensors, {"kind": "bayes_rule"}, "without 'mixture.sd' in its metadata"),
        (tensors, meta | {"mixture.sd": "0.0"}, "needs noise"),
    ):
        save_file(held, tmp_path / "net", metadata=told)
        with pytest.raises(RunError, match=words):
            load_net(tmp_path / "net")


class Bare:
    """Registered with nothing but a name."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(1)


VERBS = {
    "radius": ("certificate", lambda net: radius(net, DATA.x, DATA.y)),
    "descend": ("trainee", lambda net: descend(net, DATA.x, DATA.y, step=0.1, steps=1)),
    "save_net": ("state", lambda net: save_net("nowhere", net)),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("known", [True, False])
def test_a_missing_facet_is_told_with_the_verb_and_the_kind(
    fresh: None, verb: str, known: bool
) -> None:
    if known:
        register(Bare, name="bare")
    facet, call = VERBS[verb]
    with pytest.raises(CallError) as caught:
        call(Bare())
    told = str(caught.value)
    assert told.startswith(f"{verb}: a Bare (")
    assert ("kind 'bare'" if known else "of no registered kind") in told
    assert f"has no {facet};" in told
    assert f"tacit.nets.register(Bare, name=..., {facet}=...)" in told
    assert "\n" not in told


@pytest.mark.parametrize("facet", sorted(FACETS))
def test_each_facet_says_what_it_is(fresh: None, facet: str) -> None:
    kind = register(Bare, name="bare")
    assert getattr(kind, facet) is None
    with pytest.raises(CallError, match=f"has no {facet}; register it") as caught:
        getattr(asked_of(Bare(), "verb"), facet)
    assert FACETS[facet] in str(caught.value)


def test_a_kind_without_load_is_told_and_so_are_names_that_clash(
    fresh: None, tmp_path: Path
) -> None:
    register(Bare, name="bare", state=lambda net: ({"w": torch.ones(1)}, {"kind": "bare"}))
    save_net(tmp_path / "bare", Bare())
    with pytest.raises(RunError, match=r"kind 'bare'.*import the package that registers it"):
        load_net(tmp_path / "bare")
    with pytest.raises(CallError, match="the name 'bare' is that of Bare; choose another"):
        register(nn.Linear, name="bare")
    with pytest.raises(CallError, match="there is no facet 'certificates'; one of"):
        register(Bare, name="bare", certificates=1)


def test_what_nobody_registered_is_attacked_by_autograd() -> None:
    assert isinstance(target_of(Bare(), (6,)), TorchTarget)
    assert minimal(Bare(), DATA.x, Bare()(DATA.x).sign()).radius.isfinite().all()


def test_a_subclass_has_the_facets_of_its_bases(fresh: None) -> None:
    class Mine(nn.Linear):
        pass

    register(Mine, name="mine", certificate=lambda _, x, *__: exactly(x[:, 0]))
    kind = kind_of(Mine(6, 2))
    assert kind.name == "mine"
    assert kind.target is kind_of(nn.Identity()).target
    assert torch.equal(radius(Mine(6, 2), DATA.x, DATA.y).lower, DATA.x[:, 0])


def test_a_sequential_of_plain_layers_comes_back(tmp_path: Path) -> None:
    net = nn.Sequential(
        nn.Unflatten(1, (1, 2, 3)),
        nn.Conv2d(1, 4, 2, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.LeakyReLU(0.1),
        nn.Flatten(),
        nn.Sequential(PolyReLU(48, 7, p=2.0), nn.Linear(7, 2)),
    ).double()
    net(torch.randn(9, 6, dtype=torch.float64))  # running statistics
    net.eval()
    save_net(tmp_path / "net", net)
    state = torch.random.get_rng_state()
    again = load_net(tmp_path / "net")
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(again(DATA.x), net(DATA.x))
    assert not again.training


def test_other_modules_are_not_saved_and_the_remedy_is_told(tmp_path: Path) -> None:
    class Own(nn.Linear):
        pass

    for net in (Own(2, 2), nn.Sequential(nn.LSTM(2, 2))):
        with pytest.raises(
            CallError, match=r"no Sequential of plain layers.*state=\.\.\. and load"
        ):
            save_net(tmp_path / "net", net)
    tensors, meta = kind_of(nn.Identity()).state(torch_net())
    for layers in ("[[[[", '["LSTM", {}]', '["Linear", {"odd": 1}]', '["Linear", 3]', "7", None):
        told = meta | {"layers": layers} if layers else {"kind": "sequential"}
        save_file(tensors, tmp_path / "net", metadata=told)
        with pytest.raises(RunError, match="its layers cannot be built"):
            load_net(tmp_path / "net")


def test_a_torch_module_has_a_radius() -> None:
    x = DATA.x[:6]
    for net in (torch_net(30), torch_net().double(), torch_net(4, 2).double()):
        y = net(x.to(next(net.parameters()).dtype)).argmax(1)
        found = radius(net, x, y)
        assert (found.lower > 0).all()
        assert (found.lower <= found.upper * (1 + 1e-6)).all()
    assert found.exact.all(), "few neurons and two outputs: by the structure"
    with pytest.raises(CallError, match="radius: no certificate of this Sequential: Tanh"):
        radius(nn.Sequential(nn.Linear(6, 2), nn.Tanh()).eval(), x, y)


def test_nets_with_logits_have_a_radius_on_both_sides() -> None:
    x = DATA.x[:3]
    for net in (LOGITS, Head(LOGITS, torch.tensor([0, 1, 0])), Head(LOGITS, torch.arange(3))):
        y = net(x).argmax(1)
        found = radius(net, x, y)
        assert (found.lower > 0).any()
        assert (found.lower <= found.upper).all()
        best = minimal(net, x, y)
        assert torch.allclose(best.radius, found.upper)
        with pytest.raises(CallError, match="labels are whole numbers from 0 to"):
            radius(net, x, -torch.ones(3))


def test_nets_with_logits_and_rules_are_trained() -> None:
    x = DATA.x
    settings = {"step": 0.1, "steps": 20, "loss": "logistic", "record": (0, 20)}
    for net, y in (
        (LOGITS, DATA.z % 3),
        (Head(LOGITS, torch.tensor([0, 1, 0])), DATA.z % 2),
        (Linear(torch.ones(6).double()), DATA.y),
    ):
        found = descend(net, x, y, **settings)
        assert found.history[1].loss < found.history[0].loss
        centre = {k: v for k, v in found.net.tensors().items() if k.endswith("centre")}
        assert all(torch.equal(v, LOGITS.centre) for v in centre.values())
    both = dataclasses.replace(
        LOGITS, **{k: getattr(LOGITS, k).expand(2, *getattr(LOGITS, k).shape) for k in "wvb"}
    )
    many = descend(both, x, DATA.z % 3, **settings).net
    assert torch.allclose(many.w[1], descend(LOGITS, x, DATA.z % 3, **settings).net.w)
    for y, words in ((DATA.y, "whole numbers 0 to 2"), (DATA.z, "whole numbers 0 to 2")):
        with pytest.raises(CallError, match=words):
            descend(LOGITS, x, y, **settings)
    with pytest.raises(CallError, match="one loss, softmax cross-entropy"):
        descend(LOGITS, x, DATA.z % 3, step=0.1, steps=1)
    with pytest.raises(CallError, match=r"at_kink=1\.0"):
        descend(LOGITS, x, DATA.z % 3, at_kink=1.0, **settings)


def test_a_net_of_another_type_than_the_points_is_told() -> None:
    for net in (Linear(torch.ones(6)), torch_net(), LOGITS.to(torch.float32)):
        with pytest.raises(CallError, match=r"the model torch.float32 on cpu"):
            task_of(net, DATA.x, DATA.y, [0.1], norm=2, box=None, batch=None)


def test_the_code_behind_a_verb_is_found_through_the_registration() -> None:
    def rests_on(module: str, name: str) -> set[str]:
        return {line.partition(":")[0] for line in _reached([(module, name)])}

    training = rests_on("tacit.train.descent.descend", "descend")
    assert "tacit.train.descent.trainees" in training, "torch modules are trained there"
    assert not any(module.startswith(("tacit.attack", "tacit.auditing")) for module in training)
    proof = rests_on("tacit.certify.radius", "radius")
    assert {"tacit.certify.choice", "tacit.certify.relu.tree"} <= proof
    assert not any(module.startswith(("tacit.train", "tacit.auditing")) for module in proof)


def test_a_sequential_is_loaded_with_the_names_and_repeats_it_was_saved_with(tmp_path):
    shared = torch.nn.Linear(3, 3)
    for model in (
        torch.nn.Sequential(OrderedDict(fc=torch.nn.Linear(3, 2), act=torch.nn.ReLU())),
        torch.nn.Sequential(shared, torch.nn.ReLU(), shared),
    ):
        save_net(tmp_path / "net.safetensors", model.eval())
        x = torch.randn(4, 3)
        assert torch.equal(load_net(tmp_path / "net.safetensors")(x), model(x))


def test_odd_files_are_one_line(tmp_path):
    path = tmp_path / "net.safetensors"
    write_tensors(path, {"w": torch.ones(1)}, {"kind": ""})
    with pytest.raises(RunError, match="holds weights without a net"):
        load_net(path)
    with pytest.raises(RunError, match="complex64"):
        write_tensors(path, {"w": torch.ones(1, dtype=torch.complex64)}, {})


@pytest.mark.parametrize("outputs", ["[0, 1, 1000000000000]", "[0, 1, Infinity]", "[0, 1, 3]", "3"])
def test_a_head_whose_classes_make_no_sense_is_one_line(tmp_path, outputs):
    tensors = {"w": torch.ones(4, 2), "v": torch.ones(3, 4)}
    meta = {"kind": "poly_relu_classifier", "p": "2", "outputs": outputs}
    write_tensors(tmp_path / "net.safetensors", tensors, meta)
    with pytest.raises(RunError, match="the head is damaged"):
        load_net(tmp_path / "net.safetensors")


@pytest.mark.parametrize("labels", [torch.ones(2, 2), torch.ones(2, dtype=torch.complex64)])
def test_labels_of_another_shape_or_type_are_one_line(tmp_path, labels):
    tensors = {"w": torch.ones(2, 3, 4), "labels": labels}
    path = tmp_path / "net.safetensors"
    save_file(tensors, path, {"kind": "multi_class"})
    with pytest.raises(RunError, match="labels"):
        load_net(path)


def test_a_layer_of_a_file_allocates_nothing(tmp_path):
    layers = [
        "Sequential",
        [["0", ["Linear", {"in_features": 10**6, "out_features": 10**6, "device": "cpu"}]]],
    ]
    path = tmp_path / "net.safetensors"
    write_tensors(
        path, {"0.weight": torch.ones(1)}, {"kind": "sequential", "layers": json.dumps(layers)}
    )
    with pytest.raises(RunError, match="with a device or a type of its own"):
        load_net(path)
