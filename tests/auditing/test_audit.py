"""The audit: closed forms where there are any, flags where an attack fails, loudness where a bug shows."""

from __future__ import annotations

import importlib
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit.attack.ball.apgd import apgd
from tacit.attack.ball.task import Attacked
from tacit.auditing import AuditRecord, attacks, audit, compare
from tacit.auditing.rounding import double_of
from tacit.auditing.subject import subject_of
from tacit.base.progress import Silent
from tacit.certify import choice, logits_radius, radius
from tacit.certify.interval import at_least
from tacit.data import min2024_mixture
from tacit.errors import CallError, RunError
from tacit.nets import PolyReLUNet, average_net, centre_net, poly_relu_start, prop48_net

MIXTURE = min2024_mixture(D=20, K=4, K1=2, alpha=0.3)
POINTS = MIXTURE.sample(100, torch.Generator().manual_seed(0))
DATA = (POINTS.x, POINTS.y)
DUAL = {1: math.inf, 2: 2, math.inf: 1}
KEYS = ["clean", "n", "norm", "curve", "flags", "universal", "averaging"]


pytestmark = pytest.mark.usefixtures("few_steps")


def audited(model: Any, data: Any = DATA, **options: Any) -> AuditRecord:
    return audit(model, data, progress=Silent(), device="cpu", **options)


def linear(outputs: int, seed: int = 0) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(20, outputs).double().eval()


def logits_data(model: nn.Module, n: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(n, 20, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    y = model(x).argmax(1)
    y[:6] = (y[:6] + 1) % 3  # some that are wrong
    return x, y


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_a_linear_classifier_is_audited_exactly(norm: float) -> None:
    model = linear(3)
    x, y = logits_data(model)
    with torch.no_grad():
        gaps = model(x).gather(1, y.unsqueeze(1)) - model(x)
        w = model.weight[y].unsqueeze(1) - model.weight
    far = gaps / torch.linalg.vector_norm(w, DUAL[norm], dim=2)
    exact = far.scatter(1, y.unsqueeze(1), torch.inf).amin(1)
    radii = tuple(float(exact[exact > 0].quantile(q)) for q in (0.2, 0.5, 0.9))
    record = audited(model, (x, y), norm=norm, radii=radii)
    assert record.clean.value == pytest.approx(54 / 60)
    for at in record.curve:
        truth = float((exact > at.radius).double().mean())
        assert at.certified.value == pytest.approx(truth, abs=1 / 60 + 1e-9)
        assert at.attacked.value == pytest.approx(truth, abs=1 / 60 + 1e-9)
        assert at.certified.value <= at.attacked.value
    assert [flag.name for flag in record.flags] == []
    right = exact > 0
    assert torch.equal(record.upper > 0, right)
    assert (record.lower[right] <= exact[right] * (1 + 1e-9)).all()
    assert (record.upper[right] >= exact[right] * (1 - 1e-6)).all()


@pytest.mark.parametrize("net", [average_net(MIXTURE), centre_net(MIXTURE, 3.0)])
def test_a_two_layer_net_has_both_ends_at_its_exact_radius(net: Any) -> None:
    exact = radius(net, *DATA).upper
    radii = (0.0, 0.2, 0.4, 0.6)
    record = audited(net, radii=radii)
    for at in record.curve:
        truth = float((exact > at.radius).double().mean())
        assert at.certified.value == at.attacked.value == pytest.approx(truth)
    assert record.attack == "minimal norm"
    assert record.flags == ()


def test_the_average_net_is_broken_by_one_direction_and_averages() -> None:
    record = audited(average_net(MIXTURE), radii=(0.2, 1.2))
    broken = {(at.radius, at.signed): at.broken for at in record.universal}
    assert broken[1.2, True] == 1.0
    assert broken[0.2, True] <= broken[1.2, True]
    assert broken[1.2, False] <= broken[1.2, True]
    assert record.averaging.verdict == "averages"
    for at in record.universal:
        assert at.delta.shape == (20,)
        assert float(at.delta.norm()) <= at.radius * (1 + 1e-6)


def poly_relu(dtype: torch.dtype = torch.float64) -> tuple[PolyReLUNet, Any]:
    """A small net and points of which some are wrong."""
    generator = torch.Generator().manual_seed(0)
    net = poly_relu_start(20, 12, 3, 2.0, [generator], dtype=dtype)
    net = replace(net, w=net.w[0], v=net.v[0], b=None)
    x = torch.randn(12, 20, generator=generator, dtype=dtype)
    y = net(x).argmax(1)
    y[:2] = (y[:2] + 1) % 3
    return net, (x, y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("norm", [2, math.inf])
def test_a_poly_relu_net_is_certified_from_below(norm: float, dtype: torch.dtype) -> None:
    net, (x, y) = poly_relu(dtype)
    record = audited(net, (x, y), norm=norm, radii=(0.01, 0.1))
    assert record.certificate.startswith("lower bounds of a PolyReLUNet")
    expected = logits_radius(net, x, y, norm=norm).lower
    assert record.lower.tolist() == pytest.approx(expected.tolist(), rel=1e-6)
    assert bool((record.lower[2:] > 0).all())
    assert bool((record.lower <= record.upper).all())


@pytest.mark.parametrize("batch", [4, 100])
def test_only_the_first_right_points_of_a_poly_relu_net_are_certified(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 100 of 20 features: 5 points
    monkeypatch.setattr(importlib.import_module("tacit.certify.radius"), "WORK", 100)
    net, data = poly_relu()
    record = audited(net, data, radii=(0.01,), batch=batch)
    assert (record.lower > 0).nonzero().flatten().tolist() == [2, 3, 4, 5, 6]
    assert "for the first 5 points that are right" in record.certificate


def test_the_log_odds_of_a_multi_class_net_are_one_output() -> None:
    record = audited(prop48_net(MIXTURE), radii=(0.1, 0.5))
    assert record.clean.value > 0.9
    assert all(at.certified.value <= at.attacked.value for at in record.curve)
    assert {at.signed for at in record.universal} == {True, False}


def test_logits_of_more_classes_have_no_signed_direction() -> None:
    model = linear(3)
    record = audited(model, logits_data(model), radii=(0.1,))
    assert [at.signed for at in record.universal] == [False]


def test_images_in_a_box_are_audited_by_batches_as_at_once() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    x = torch.rand(24, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        model[3].bias -= model(x).mean(0)
        y = model(x).argmax(1)
    assert len(y.unique()) == 3
    whole, parts = (
        audited(model, (x, y), norm="inf", radii=(0.01, 0.1), box=(0, 1), batch=batch)
        for batch in (24, 10)
    )
    assert whole.curve[0] == parts.curve[0]
    assert whole.certificate == parts.certificate == "linear relaxation (CROWN)"
    assert whole.clean.value == 1.0
    for at in whole.curve:
        assert at.certified.value <= at.attacked.value


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_a_perturbation_on_the_sphere_counts_at_its_radius_in_float32(norm: float) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 8), nn.ReLU(), nn.Linear(8, 1)).eval()
    x = POINTS.x.float()
    with torch.no_grad():
        y = torch.where(model(x).squeeze(1) > 0, 1.0, -1.0)
    radii = (0.03, 0.2)
    record = audited(model, (x, y), norm=norm, radii=radii)
    attacked = apgd(model, x, y, radii, norm=norm, steps=5).robust_accuracy
    for at, most in zip(record.curve, attacked.tolist(), strict=True):
        assert at.attacked.value <= most + 1e-9


def test_points_are_cast_to_the_models_type() -> None:
    record = audited(linear(1).float(), radii=(0.01,))
    assert record.n == 100
    assert all(parameter.dtype == torch.float32 for parameter in linear(1).float().parameters())


def test_radius_zero_alone_needs_no_attack() -> None:
    record = audited(average_net(MIXTURE), radii=(0.0,))
    assert record.curve[0].certified == record.curve[0].attacked == record.clean
    assert record.universal == ()


def test_radii_that_are_not_given_are_chosen_by_the_data() -> None:
    record = audited(average_net(MIXTURE))
    assert len(record.curve) == 8
    assert 0.3 < record.curve[-1].radius < 1.2


class Odd(nn.Module):
    """Does with its input what it is told."""

    def __init__(self, do: Any) -> None:
        super().__init__()
        self.do = do
        self.eval()

    def forward(self, x: torch.Tensor) -> Any:
        return self.do(x)


U = MIXTURE.labels @ MIXTURE.centres


def flags_of(record: AuditRecord) -> set[str]:
    return {flag.name for flag in record.flags}


def test_steps_have_no_gradient_to_follow_and_that_is_flagged() -> None:
    model = Odd(lambda x: 3 * torch.round(x @ U) + 0 * x.sum(1))
    record = audited(model, radii=(0.01, 0.02))
    assert flags_of(record) >= {"gradient-vanishes", "loss-not-increasing", "no-certificate"}
    assert record.certificate.startswith("none: ")
    assert all(at.certified.value == 0 for at in record.curve)


def test_a_random_model_is_flagged() -> None:
    model = Odd(lambda x: nn.functional.dropout(x, 0.5, training=True) @ U)
    assert "output-random" in flags_of(audited(model, radii=(0.1,)))


def test_a_model_without_gradient_is_audited_by_queries() -> None:
    model = Odd(lambda x: (x @ U > 0).double() - 0.5)
    with pytest.raises(CallError, match="--black-box"):
        audited(model, radii=(0.5, 3.0))
    record = audited(model, radii=(0.5, 3.0), black_box=True)
    assert "queries-only" in flags_of(record)
    assert record.universal == ()
    exact = radius(tacit.nets.Linear(U), *DATA).upper
    assert (record.upper >= exact * (1 - 1e-6)).all()
    assert record.curve[1].attacked.value < 0.5


MASKED = {
    "rounded input": lambda x: torch.round(2 * x) / 2 @ U + 1e-6 * x.sum(1),
    "saturated sigmoid": lambda x: torch.sigmoid(1e4 * (x @ U)) - 0.5,
    "hard step": lambda x: torch.sign(x @ U) + 1e-6 * x.sum(1),
}


@pytest.mark.parametrize("name", MASKED)
def test_what_one_perturbation_breaks_counts_as_broken(name: str) -> None:
    model = Odd(MASKED[name])
    record = audited(model, radii=(0.5, 0.7))
    attacked = {at.radius: at.attacked.value for at in record.curve}
    for at in record.universal:
        assert attacked[at.radius] <= 1 - at.broken + 1e-12
        sign = -POINTS.y if at.signed else torch.ones(100).double()
        broken = POINTS.y * model(POINTS.x + sign.unsqueeze(1) * at.delta) <= 0
        assert float(broken.double().mean()) == at.broken
        assert (record.upper[broken] <= at.radius).all()
    assert flags_of(record) >= {"universal-beats-attack", "queries-beat-gradients"}


def test_an_attack_that_is_not_beaten_is_not_flagged() -> None:
    record = audited(Odd(lambda x: x @ U), radii=(0.2, 0.4))
    assert flags_of(record) == {"no-certificate"}


def test_a_certificate_that_one_perturbation_contradicts_ends_the_audit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = linear(1)
    monkeypatch.setattr(attacks, "apgd", fake([[False] * 200], [[-1] * 200]))
    monkeypatch.setattr(
        choice, "answered", lambda net, x, *_: at_least(torch.full((len(x),), 9.0).double())
    )
    with pytest.raises(RunError, match="certified-above-attacked"):
        audited(model, radii=(50.0,))


@pytest.mark.parametrize("black_box", [False, True])
@pytest.mark.parametrize(
    ("do", "answer"),
    [
        (lambda x: torch.sigmoid(x @ U), "never negative.*drop the sigmoid, or subtract 0.5"),
        (lambda x: (x @ U > 0).double() + 0 * x.sum(1), "never negative"),
        (lambda x: x @ U > 0, r"returned torch.bool: .*\.float\(\)"),
        (lambda x: torch.sign(x @ U).long(), "returned torch.int64"),
    ],
)
def test_probabilities_and_labels_are_no_scores(do: Any, answer: str, black_box: bool) -> None:
    with pytest.raises(CallError, match=answer):
        audited(Odd(do), radii=(0.1,), black_box=black_box)


def coarse() -> nn.Sequential:
    """Linear, by way of numbers near 1e5: its margins in float32 are good to 0.01."""
    first, last = nn.Linear(20, 1), nn.Linear(1, 1)
    with torch.no_grad():
        first.weight.copy_(U.unsqueeze(0))
        first.bias.fill_(1e5)
        last.weight.fill_(1.0)
        last.bias.fill_(-1e5)
    return nn.Sequential(first, last).eval()


def test_the_rounding_of_a_model_is_no_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    radii = (0.4, 0.5, 0.6)
    record = audited(coarse(), radii=radii)
    exact = radius(tacit.nets.Linear(U), *DATA).upper
    for at in record.curve:
        assert at.certified.value <= float((exact > at.radius).double().mean()) + 0.03
        assert at.certified.value <= at.attacked.value
    monkeypatch.setattr(sys.modules["tacit.auditing.audit"], "double_of", lambda _: None)
    with pytest.raises(RunError, match=r"model.double\(\)"):
        audited(coarse(), radii=radii)


def test_a_net_of_tacit_in_float32_has_its_copy_too() -> None:
    net = average_net(MIXTURE)
    small = tacit.nets.TwoLayerNet(net.w.float(), net.v.float())
    subject = subject_of(small, POINTS.x, "cpu", gradient=True)
    assert double_of(subject).scores(POINTS.x).dtype == torch.float64
    assert double_of(replace(subject, model=net, dtype=torch.float64)) is None
    stubborn = Odd(lambda x: x @ U.float())
    assert double_of(replace(subject, model=stubborn)) is None


@pytest.mark.parametrize(
    ("do", "radii", "answer"),
    [
        (lambda x: (x @ U).log1p(), (9.0,), r"NaN or inf.*\(at a perturbed point: .*--box"),
        (lambda x: x @ U, (1e200,), r"radius 1e\+200: torch.float64"),
    ],
)
def test_what_fails_beside_the_points_says_so(do: Any, radii: Any, answer: str) -> None:
    few = (POINTS.x[POINTS.y > 0], POINTS.y[POINTS.y > 0])
    with pytest.raises(CallError, match=answer):
        audited(Odd(do), few, radii=radii)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch.jit.trace, still in use
def test_good_models_of_every_make_are_audited_alike() -> None:
    plain = linear(3).float()
    x, y = logits_data(linear(3), 8)
    x = x.float()
    kept = x.clone()
    truth = audited(plain, (x, y), radii=(0.3,))

    def squeezed(z: torch.Tensor) -> torch.Tensor:
        return plain(z).squeeze()

    def written(z: torch.Tensor) -> torch.Tensor:
        z += 1
        return plain(z - 1)

    def wide(z: torch.Tensor) -> torch.Tensor:
        return plain(z).double()

    traced = torch.jit.trace(plain, x[:2])
    for model in (Odd(squeezed), Odd(written), Odd(wide), traced.eval()):
        record = audited(model, (x, y), radii=(0.3,))
        assert record.certificate.startswith("none: ")
        assert [at.attacked for at in record.curve] == [at.attacked for at in truth.curve]
        assert torch.equal(x, kept)
        alone = audited(model, (x[7:], y[7:]), radii=(0.0,))
        assert alone.clean.value == float(record.upper[7] > 0)
    with torch.inference_mode():
        assert audited(plain, (x.numpy(), y.numpy()), radii=(0.3,)) == truth


def test_no_flag_is_raised_where_all_is_proved() -> None:
    model = nn.Sequential(nn.Linear(20, 4), nn.ReLU(), nn.Linear(4, 1)).double().eval()
    with torch.no_grad():
        model[2].weight.zero_()
        model[2].bias.fill_(1.0)
    record = audited(model, (POINTS.x, torch.ones(100)), radii=(0.1, 0.5))
    assert record.curve[1].certified.value == 1.0
    assert record.flags == ()


def fake(alone: list[list[bool]], starts: list[list[int]]) -> Any:
    """An attack that answers as it is told: one radius a row, one point a column."""

    def run(model: Any, x: torch.Tensor, y: Any, radii: Any, **options: Any) -> Attacked:
        names = options.get("starts", ("zero", "random"))
        own = torch.tensor(alone)[:, : len(x)] & ("random" in names)
        broken = own.cumsum(0) > 0
        n = len(x)
        return Attacked(
            torch.tensor(radii, dtype=x.dtype),
            x.new_zeros(len(radii), n, *x.shape[1:]),
            torch.where(broken, -1.0, 0.5).to(x.dtype),
            broken,
            own,
            torch.tensor(starts)[:, :n],
            (*names, "smaller radius"),
            x.new_ones(n),
            torch.zeros(n, dtype=torch.bool),
        )

    return run


def test_luck_and_lost_successes_are_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    data = (MIXTURE.centres, MIXTURE.labels)
    alone = [[True, True, False, False], [False, True, False, True]]
    monkeypatch.setattr(attacks, "apgd", fake(alone, [[1, 1, -1, -1], [2, 2, -1, 0]]))
    model = Odd(lambda x: x @ U)
    flags = {flag.name: flag.value for flag in audited(model, data, norm=1, radii=(0.1, 0.2)).flags}
    assert flags["not-monotone"] == 0.25
    assert flags["random-beats-gradient"] == 0.5
    assert "loss-not-increasing" not in flags


def test_a_certificate_above_an_attack_ends_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        choice, "answered", lambda net, x, *_: at_least(torch.full((len(x),), 9.0).double())
    )
    with pytest.raises(RunError, match=r"certified-above-attacked: points .* up to 9"):
        audited(linear(1), radii=(5.0,), batch=64)


def test_all_points_wrong_leaves_nothing_to_attack() -> None:
    record = audited(average_net(MIXTURE), (POINTS.x, -POINTS.y), radii=(0.1,))
    assert record.clean.value == 0
    assert record.curve[0].attacked.value == 0


def test_the_document_has_exactly_the_promised_keys_and_reads_back(tmp_path: Path) -> None:
    record = audited(average_net(MIXTURE), radii=(0.0, 0.3))
    record.save(tmp_path / "audit.json")
    document = json.loads((tmp_path / "audit.json").read_text())
    assert document == record.as_json()
    assert list(document)[:7] == KEYS
    assert all(list(at) == ["radius", "certified", "attacked"] for at in document["curve"])
    assert all(list(at) == ["radius", "signed", "broken"] for at in document["universal"])
    assert AuditRecord.load(tmp_path / "audit.json") == record


def test_a_file_that_is_no_record_is_told(tmp_path: Path) -> None:
    with pytest.raises(CallError, match="cannot be read"):
        AuditRecord.load(tmp_path / "nothing.json")
    for text in ("{", "{}", "[]", '{"confidence": 3}'):
        (tmp_path / "audit.json").write_text(text)
        with pytest.raises(RunError, match="is no record of an audit"):
            AuditRecord.load(tmp_path / "audit.json")


def test_two_audits_stand_side_by_side() -> None:
    average, centre = (
        audited(net, radii=(0.1, 0.6, 3.0))
        for net in (average_net(MIXTURE), centre_net(MIXTURE, 3.0))
    )
    compared = compare(average, centre)
    assert [row.more_robust for row in compared.rows][-1] == "equal"
    text = str(compared)
    assert len(text.splitlines()) == 5
    assert "TwoLayerNet" in text
    assert [row.more_robust for row in compare(average, average).rows] == ["equal"] * 3
    for change in ({"norm": "inf"}, {"box": (0.0, 1.0)}, {"curve": centre.curve[:1]}):
        with pytest.raises(CallError, match="audit both alike"):
            compare(average, replace(centre, **change))


def test_tacit_audit_is_the_same_from_the_package() -> None:
    net = average_net(MIXTURE)
    assert tacit.audit(net, DATA, radii=(0.3,), device="cpu") == audited(net, radii=(0.3,))
    assert tacit.AuditRecord is AuditRecord


def test_wrong_calls_are_one_line() -> None:
    net = average_net(MIXTURE)
    for options, answer in (
        ({"norm": 3}, "norm 3: choose 1, 2, inf"),
        ({"radii": (-1.0,)}, "radius -1"),
        ({"radii": ()}, "at least one"),
        ({"box": (0.0, 1.0)}, "excludes the data"),
        ({"batch": 0}, "batch 0"),
        ({"limit": 0}, "limit 0"),
        ({"device": "tpu"}, "device 'tpu'"),
    ):
        with pytest.raises(CallError, match=answer):
            tacit.audit(net, DATA, **{"device": "cpu", **options})
