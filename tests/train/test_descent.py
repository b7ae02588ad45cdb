"""Descent against torch's autograd and optimizers, ensembles against single runs, the papers' loops."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tacit.data import min2024_mixture
from tacit.errors import CallError, RunError
from tacit.nets import TwoLayerNet
from tacit.train import descend
from tacit.train.descent import descend as loop
from tacit.train.descent import replayed
from tacit.train.descent.trainees import ModuleTrainee, Objective

D, N = 5, 14


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def points(*lead, seed=1, n=N):
    g = generator(seed)
    x = torch.randn(*lead, n, D, generator=g, dtype=torch.float64) / math.sqrt(D)
    return x, torch.where(torch.rand(*lead, n, generator=g) < 0.5, -1.0, 1.0).double()


def two_layer(*lead, p=1.0, h=6, biased=False, scale=0.5, seed=2, **kind):
    g = generator(seed)
    w, v, b = (scale * torch.randn(*s, generator=g, dtype=torch.float64) for s in
               ((*lead, h, D), (*lead, h), (*lead, h)))  # fmt: skip
    return TwoLayerNet(w, v, b if biased else None, p, **kind)


class AsModule(nn.Module):
    """The same net in torch's own words."""

    def __init__(self, net):
        super().__init__()
        self.w, self.v = nn.Parameter(net.w.clone()), nn.Parameter(net.v.clone())
        self.v.requires_grad_(not net.fixed_v)
        self.b = None if net.b is None else nn.Parameter(net.b.clone())
        self.p = net.p

    def forward(self, x):
        z = torch.relu(x @ self.w.T + (0 if self.b is None else self.b))
        return z**self.p / self.w.norm(dim=1) ** (self.p - 1) @ self.v


def torch_loop(module, x, y, order, *, loss, kind, step, decay, smoothing):
    """The loop as anybody would write it with torch.optim."""
    trained = [p for p in module.parameters() if p.requires_grad]
    optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[kind](
        trained, lr=step, weight_decay=decay
    )
    for rows in order:
        optimizer.zero_grad()
        f = module(x[rows]).reshape(-1)
        if loss == "exp":
            value = torch.exp(-y[rows] * f).mean()
        else:
            target = (1 - smoothing) * (y[rows] + 1) / 2 + smoothing / 2
            value = nn.functional.binary_cross_entropy_with_logits(f, target)
        value.backward()
        optimizer.step()


def epoch_orders(n, batch, epochs, seed):
    g = generator(seed)
    return [rows for _ in range(epochs) for rows in torch.randperm(n, generator=g).split(batch)]


def assert_same(net, module, rtol=1e-11):
    for name in ("w", "v", "b"):
        if (tensor := getattr(net, name)) is not None:
            torch.testing.assert_close(
                tensor, getattr(module, name).detach(), rtol=rtol, atol=1e-13
            )


@given(
    p=st.sampled_from([1.0, 1.5, 2.0, 3.0, 4.5]),
    biased=st.booleans(),
    fixed_v=st.booleans(),
    kind=st.sampled_from(["sgd", "adam"]),
    loss=st.sampled_from(["exp", "logistic"]),
    batch=st.sampled_from([None, 1, 4, N]),
    decay=st.sampled_from([0.0, 0.1]),
    smoothing=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 1000),
)
def test_a_two_layer_net_moves_as_under_torch(
    p, biased, fixed_v, kind, loss, batch, decay, smoothing, seed
):
    x, y = points(seed=seed)
    net = two_layer(p=p, biased=biased, fixed_v=fixed_v, seed=seed + 1)
    smoothing = smoothing if loss == "logistic" else 0.0
    moved = descend(
        net, x, y, step=0.02, epochs=3, loss=loss, optimizer=kind, batch=batch,
        generator=generator(seed), weight_decay=decay, label_smoothing=smoothing,
    ).net  # fmt: skip
    order = [torch.arange(N)] * 3 if batch is None else epoch_orders(N, batch, 3, seed)
    reference = AsModule(net)
    torch_loop(
        reference, x, y, order, loss=loss, kind=kind, step=0.02, decay=decay, smoothing=smoothing
    )
    assert_same(moved, reference)
    assert moved.p == p
    assert moved.fixed_v == fixed_v


@pytest.mark.parametrize("kind", ["sgd", "adam"])
@pytest.mark.parametrize("loss", ["exp", "logistic"])
def test_a_module_moves_as_under_torch(kind, loss):
    torch.manual_seed(0)
    x, y = points()
    frozen = nn.Linear(D, 4).double().requires_grad_(False)
    module = nn.Sequential(frozen, nn.Tanh(), nn.Linear(4, 3), nn.GELU(), nn.Linear(3, 1)).double()
    before = [p.clone() for p in module.parameters()]
    moved = descend(module, x, y, step=0.05, epochs=4, loss=loss, optimizer=kind, batch=5,
                    generator=generator(3), weight_decay=0.01).net  # fmt: skip
    for now, then in zip(module.parameters(), before, strict=True):
        assert torch.equal(now, then), "the caller's module was changed"
    torch_loop(
        module,
        x,
        y,
        epoch_orders(N, 5, 4, 3),
        loss=loss,
        kind=kind,
        step=0.05,
        decay=0.01,
        smoothing=0.0,
    )
    for mine, theirs in zip(moved.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-13)


def test_a_parameter_that_nothing_depends_on_stays():
    class Idle(nn.Linear):
        def __init__(self):
            super().__init__(D, 1, dtype=torch.float64)
            self.idle = nn.Parameter(torch.ones(3, dtype=torch.float64))

    moved = descend(Idle(), *points(), step=0.1, steps=3).net
    assert torch.equal(moved.idle.detach(), torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("p", [1.0, 3.0])
@pytest.mark.parametrize("kind", ["sgd", "adam"])
@pytest.mark.parametrize("shared", [True, False])
def test_each_member_is_what_it_is_alone(p, kind, shared):
    net = two_layer(2, 3, p=p, biased=True)
    x, y = points() if shared else points(2, 3)
    settings = {"step": 0.01, "epochs": 6, "optimizer": kind, "batch": 4}
    together = descend(net, x, y, generator=generator(), record=(0, 7, 24), **settings)
    for i in range(2):
        for j in range(3):
            alone = descend(
                replace(net, w=net.w[i, j], v=net.v[i, j], b=net.b[i, j]),
                *((x, y) if shared else (x[i, j], y[i, j])), generator=generator(), record=(0, 7, 24), **settings,
            )  # fmt: skip
            for name in ("w", "v", "b"):
                torch.testing.assert_close(
                    getattr(together.net, name)[i, j],
                    getattr(alone.net, name),
                    rtol=1e-12,
                    atol=1e-14,
                )
            for one, all_ in zip(alone.history, together.history, strict=True):
                assert float(one.loss) == pytest.approx(float(all_.loss[i, j]), rel=1e-12)
                assert float(one.margin) == pytest.approx(float(all_.margin[i, j]), rel=1e-10)


def test_history_holds_the_net_the_loss_and_the_margin_of_each_step_asked_for():
    x, y = points()
    net = two_layer(p=3.0)
    long = descend(net, x, y, step=0.1, steps=9, record=(0, 4, 9))
    assert [m.step for m in long.history] == [0, 4, 9]
    short = descend(net, x, y, step=0.1, steps=4)
    for moment, there in zip(long.history, (net, short.net, long.net), strict=True):
        assert torch.equal(moment.net.w, there.w)
        margins = y * there(x)
        torch.testing.assert_close(moment.loss, (-margins).exp().mean(), rtol=1e-12, atol=0)
        torch.testing.assert_close(moment.margin, margins.min(), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_small_steps_conserve_the_balance_to_first_order(p):
    """Gradient flow keeps ||w_j||^2 - v_j^2; descent loses it at a rate proportional to the step."""
    x, y = points()
    net = two_layer(p=p, scale=0.3)
    drift = []
    for halves in range(3):
        step = 0.02 / 2**halves
        end = descend(net, x, y, step=step, steps=50 * 2**halves).net
        kept = [(n.w.square().sum(1) - n.v.square()) for n in (net, end)]
        drift.append(float((kept[1] - kept[0]).abs().max()))
    assert drift[0] < 0.02
    assert drift[0] / drift[1] == pytest.approx(2, rel=0.1)
    assert drift[1] / drift[2] == pytest.approx(2, rel=0.1)


def test_li2025_relu_at_zero_is_a_choice():
    """A neuron at 0 with derivative 1 there moves along the class average; with 0 it stays."""
    x, y = points()
    net = TwoLayerNet(torch.zeros(1, D, dtype=torch.float64), torch.ones(1, dtype=torch.float64),
                      torch.zeros(1, dtype=torch.float64), fixed_v=True)  # fmt: skip
    for at_kink in (0.0, 0.5, 1.0):
        moved = descend(net, x, y, step=0.1, steps=1, loss="logistic", at_kink=at_kink).net
        torch.testing.assert_close(moved.w[0], at_kink * 0.1 * 0.5 * (y[:, None] * x).mean(0))
        torch.testing.assert_close(moved.b[0], at_kink * 0.1 * 0.5 * y.mean())
        assert torch.equal(moved.v, net.v)


@pytest.mark.parametrize("scale", [1e-7, 1e-12])
def test_float32_follows_float64_from_a_small_start(scale):
    """z^3 of 1e-12 is 0 in float32; the scaled form never takes that power."""
    mixture = min2024_mixture(20, 4, 2, 0.1, generator(5))
    data = mixture.sample(200, generator(6))
    g = generator(7)
    w, v = torch.randn(16, 20, generator=g), torch.randn(16, generator=g)
    nets = [
        TwoLayerNet(scale * w.to(t), scale * v.to(t), p=3.0) for t in (torch.float64, torch.float32)
    ]
    ends = [
        descend(net, data.x.to(net.w.dtype), data.y.to(net.w.dtype), step=0.2, epochs=10, batch=20,
                generator=generator(8)).net
        for net in nets
    ]  # fmt: skip
    gap = (ends[1].w.double() - ends[0].w).norm() / ends[0].w.norm()
    assert float(gap) < 1e-4
    assert not torch.equal(ends[1].w, nets[1].w)


def test_a_neuron_at_zero_stays_silent_for_p_above_one():
    net = two_layer(p=3.0)
    w = net.w.clone()
    w[0] = 0
    end = descend(replace(net, w=w), *points(), step=0.05, steps=20).net
    assert torch.equal(end.w[0], torch.zeros(D, dtype=torch.float64))
    assert torch.isfinite(end.w).all()


def test_an_all_zero_row_is_a_point_like_any_other():
    x, y = points()
    x[3] = 0
    assert torch.isfinite(descend(two_layer(biased=True), x, y, step=0.05, steps=10).net.w).all()


def test_the_min2024_loop_ends_at_the_class_averages():
    """The released configuration at a small size: 401 epochs, batches of 100, step 0.2, init 1e-7."""
    mixture = min2024_mixture(30, 4, 2, 0.05, generator(11))
    data = mixture.sample(400, generator(12))
    g = generator(13)
    w, v = (1e-7 * torch.randn(*s, generator=g, dtype=torch.float64) for s in ((20, 30), (20,)))
    last = 401 * 4
    trained = descend(
        TwoLayerNet(w, v), data.x, data.y, step=0.2, epochs=401, batch=100, generator=generator(14),
        record=(last,),
    )  # fmt: skip
    assert float(trained.history[0].loss) < 0.05
    assert float(trained.history[0].margin) > 0
    end = trained.net
    mass = end.v * end.w.norm(dim=1)
    for sign in (1, -1):
        average = mixture.centres[mixture.labels == sign].sum(0) / math.sqrt(2)
        own = sign * mass > 0.01 * mass.abs().max()
        assert own.any()
        assert float(((end.w[own] @ average) / end.w[own].norm(dim=1)).min()) > 0.97


def test_divergence_is_an_error_that_names_the_step_and_the_member():
    x, y = points()
    wild = two_layer(scale=3.0)
    with pytest.raises(RunError, match=r"at step \d+: take a smaller step"):
        descend(wild, x, y, step=1e3, steps=200)
    both = replace(
        wild, w=torch.stack([wild.w * 1e-9, wild.w]), v=torch.stack([wild.v * 1e-9, wild.v])
    )
    with pytest.raises(RunError, match=r"member \[1\]"):
        descend(both, x, y, step=1e3, steps=3)
    with pytest.raises(RunError, match="NaN or inf after step 1"):
        descend(
            nn.Linear(D, 1).float(),
            x.float() * 1e30,
            y.float(),
            step=1e38,
            steps=1,
            loss="logistic",
        )


def test_bad_calls_are_refused_in_the_users_words():
    x, y = points()
    net, module = two_layer(), nn.Linear(D, 1).double()
    good = {"step": 0.1, "steps": 2}
    nan = x.clone()
    nan[0, 0] = math.nan
    tiny = replace(two_layer(p=3.0), w=torch.full((6, D), 1e-30), v=torch.ones(6))
    cases = [
        (net, nan, y, good, "NaN"),
        (net, x, 2 * y, good, "labels"),
        (net, x, y[1:], good, "one label a point"),
        (net, x[:, 1:], y, good, "shape"),
        (net, x.float(), y.float(), good, "float32"),
        (net, x, y, {**good, "step": 0.0}, "step=0"),
        (net, x, y, {**good, "step": math.inf}, "step=inf"),
        (net, x, y, {"step": 0.1}, "give one of them"),
        (net, x, y, {**good, "epochs": 2}, "give one of them"),
        (net, x, y, {**good, "steps": 0}, "at least 1"),
        (net, x, y, {**good, "batch": N + 1, "generator": generator()}, f"batch={N + 1}"),
        (net, x, y, {**good, "batch": 3}, "generator"),
        (net, x, y, {**good, "record": (3,)}, "record"),
        (net, x, y, {**good, "weight_decay": -1.0}, "weight_decay"),
        (net, x, y, {**good, "label_smoothing": 0.1}, "logistic"),
        (net, x, y, {**good, "loss": "logistic", "label_smoothing": 1.0}, "label_smoothing=1"),
        (net, x, y, {**good, "at_kink": 2.0}, "at_kink"),
        (replace(net, w=net.w * math.nan), x, y, good, "w holds NaN"),
        (tiny, x.float(), y.float(), good, "underflows in torch.float32 .* take float64, or follow the flow"),
        (replace(two_layer(p=3.0), w=torch.full((6, D), 1e-200, dtype=torch.float64)), x, y, good,
         r"underflows in torch.float64 at so small an init: follow the flow"),
        (replace(net, w=0 * net.w, v=0 * net.v), x, y, good, "all weights are 0: no step ever leaves that start"),
        (module, x, y, {**good, "at_kink": 1.0}, "a MultiClassNet only"),
        (nn.Linear(D, 2).double(), x, y, good, "one number each"),
        (nn.Identity(), x, y, good, "nothing to train"),
        (module, *points(2), good, "a module is trained"),
    ]  # fmt: skip
    for subject, at, label, settings, words in cases:
        with pytest.raises(CallError, match=words):
            descend(subject, at, label, **settings)


def recorded_on_a_cpu(step):
    """What a recording does, without a GPU: a few steps on the way, then one at each call."""
    for _ in range(3):
        step()
    return step


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize("p", [1.0, 3.0])
def test_a_replayed_descent_is_the_plain_one(p, batch, monkeypatch):
    """14 points in batches of 4: the last of an epoch has 2, which no recording of 4 fits."""
    x, y = points(2)
    net = two_layer(2, p=p)
    length = {"epochs": 3} if batch else {"steps": 7}

    def ended():
        return descend(
            net, x, y, step=0.2, loss="logistic", batch=batch, generator=generator(), record=(5,),
            weight_decay=0.1, **length,
        )  # fmt: skip

    plain = ended()
    monkeypatch.setattr(replayed, "recorded", recorded_on_a_cpu)
    monkeypatch.setattr(loop, "may_record", lambda *_: True)
    replays = ended()
    for one, other in ((plain.net, replays.net), (plain.history[0].net, replays.history[0].net)):
        assert torch.equal(one.w, other.w)
        assert torch.equal(one.v, other.v)


def test_only_closed_forms_without_moving_points_are_recorded():
    objective = Objective("exp", 0.0, 0.0)
    own = replayed.TwoLayerTrainee(two_layer(), objective)
    torchs = ModuleTrainee(AsModule(two_layer()), objective)
    assert replayed.may_record(own, "sgd", "cuda", None)
    assert not replayed.may_record(own, "sgd", "cpu", None)
    assert not replayed.may_record(own, "adam", "cuda", None)
    assert not replayed.may_record(own, "sgd", "cuda", lambda *_: points()[0])
    assert not replayed.may_record(torchs, "sgd", "cuda", None)


@pytest.mark.cuda
@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize("p", [1.0, 3.0])
def test_on_a_gpu_a_recorded_descent_follows_the_cpus(p, batch):
    x, y = points(3)
    net = two_layer(3, p=p)
    length = {"epochs": 9} if batch else {"steps": 40}
    ends = [
        descend(
            net.to(d), x.to(d), y.to(d), step=0.2, loss="logistic", batch=batch, generator=generator(),
            **length,
        ).net
        for d in ("cpu", "cuda")
    ]  # fmt: skip
    torch.testing.assert_close(ends[1].w.cpu(), ends[0].w, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(ends[1].v.cpu(), ends[0].v, rtol=1e-9, atol=1e-12)
