"""Training of PolyReLU ensembles against autograd and torch's own optimisers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tacit.errors import CallError, RunError
from tacit.nets import PolyReLUNet, poly_relu_start
from tacit.train import LogitTraining, train_logits
from tacit.train.descent.logits import Batch, Points
from tacit.train.descent.updates import updater

READINGS = {"released": (True, False), "written": (False, True), "raw": (False, False)}


def start(
    p: float, reading: str = "released", seeds: tuple[int, ...] = (0,), bias: bool = True
) -> PolyReLUNet:
    normalize, unit = READINGS[reading]
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    return poly_relu_start(
        6, 8, 3, p, generators, centre=torch.full((6,), 0.3, dtype=torch.float64), bias=bias,
        normalize_input=normalize, unit=unit, dtype=torch.float64,
    )  # fmt: skip


def points(n: int = 40, seed: int = 9) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=generator, dtype=torch.float64)
    return x, torch.randint(0, 3, (n,), generator=generator)


def by_autograd(
    net: PolyReLUNet, x: Tensor, y: Tensor, *, steps: int, optimizer: str, loss: str,
    weights: Tensor | None = None, decay: float = 0.0,
) -> PolyReLUNet:  # fmt: skip
    """The same steps by torch, on all points each time."""
    parameters = {
        name: torch.nn.Parameter(t.clone())
        for name in ("w", "v", "b")
        if (t := getattr(net, name)) is not None
    }
    kind = torch.optim.Adam if optimizer == "adam" else torch.optim.SGD
    updates = kind(parameters.values(), lr=0.01, weight_decay=decay)
    share = torch.ones(len(x), dtype=x.dtype) if weights is None else weights / weights.mean()
    for _ in range(steps):
        logits = replace(net, **parameters)(x)
        losses = torch.zeros((), dtype=x.dtype)
        for member in logits:
            if loss == "logistic":
                each = torch.nn.functional.cross_entropy(member, y, reduction="none")
            else:
                own = member.gather(1, y[:, None])
                each = (member - own).exp().sum(1) - 1
            losses = losses + (share * each).mean()
        updates.zero_grad()
        losses.backward()
        updates.step()
    return replace(net, **{name: t.detach() for name, t in parameters.items()})


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, 4.0])
def test_steps_are_those_of_autograd_and_torchs_adam(p: float, reading: str) -> None:
    net, (x, y) = start(p, reading, seeds=(0, 1)), points()
    (found,) = train_logits(
        [net], x, y, epochs=7, batch=len(x), step=0.01, generator=torch.Generator()
    )
    wanted = by_autograd(net, x, y, steps=7, optimizer="adam", loss="logistic")
    for name in ("w", "v", "b"):
        torch.testing.assert_close(
            getattr(found, name), getattr(wanted, name), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("bias", [True, False])
def test_sgd_exp_weights_and_decay_too(bias: bool) -> None:
    net, (x, y) = start(3.0, bias=bias), points()
    weights = torch.rand(len(x), generator=torch.Generator().manual_seed(1), dtype=x.dtype)
    (found,) = train_logits(
        [net], x, y, epochs=5, batch=len(x), step=0.01, optimizer="sgd", loss="exp",
        weights=weights, weight_decay=0.1, generator=torch.Generator(),
    )  # fmt: skip
    wanted = by_autograd(
        net, x, y, steps=5, optimizer="sgd", loss="exp", weights=weights, decay=0.1
    )
    torch.testing.assert_close(found.w, wanted.w, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(found.v, wanted.v, rtol=1e-10, atol=1e-12)


@settings(max_examples=8)
@given(workers=st.integers(1, 3), batch=st.integers(8, 40))
def test_an_ensemble_is_trained_as_its_members_would_be(workers: int, batch: int) -> None:
    x, y = points()
    groups = [start(1.0, seeds=(0, 1)), start(3.0, seeds=(2, 3))]

    def trained(nets: list[PolyReLUNet], workers: int) -> tuple[PolyReLUNet, ...]:
        order = torch.Generator().manual_seed(4)
        return train_logits(nets, x, y, epochs=2, batch=batch, generator=order, workers=workers)

    together = trained(groups, workers)
    for group, found in zip(groups, together, strict=True):
        for e in range(2):
            alone = trained([replace(group, w=group.w[e], v=group.v[e], b=group.b[e])], 1)[0]  # type: ignore[index]
            torch.testing.assert_close(found.w[e], alone.w, rtol=1e-12, atol=1e-13)
            torch.testing.assert_close(found.v[e], alone.v, rtol=1e-12, atol=1e-13)


def test_the_start_stays_as_it_was_and_watch_sees_each_epoch() -> None:
    net, (x, y) = start(2.0), points()
    before, seen = net.w.clone(), []

    def watch(epoch: int, nets: tuple[PolyReLUNet, ...]) -> bool:
        seen.append((epoch, float(nets[0].w.sum())))
        return epoch == 3

    (found,) = train_logits(
        [net], x, y, epochs=9, batch=10, generator=torch.Generator().manual_seed(0), watch=watch
    )
    assert torch.equal(net.w, before)
    assert [epoch for epoch, _ in seen] == [0, 1, 2, 3]
    assert seen[0][1] == float(before.sum())
    assert seen[-1][1] == float(found.w.sum())
    assert len({total for _, total in seen}) == 4


def test_every_point_is_shown_once_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = points(23)
    shown: list[Tensor] = []
    show = LogitTraining.show_each

    def spy(self: LogitTraining, batches: Callable[[], Iterable[Batch]]) -> Tensor:
        shown.extend(batch.u for batch in batches())
        return show(self, batches)

    monkeypatch.setattr(LogitTraining, "show_each", spy)
    net = replace(start(2.0, "raw"), centre=None)  # sees the points as they are
    train_logits([net], x, y, epochs=2, batch=5, generator=torch.Generator().manual_seed(0))
    assert [len(part) for part in shown] == [5, 5, 5, 5, 3] * 2
    first, second = torch.cat(shown[:5]), torch.cat(shown[5:])
    assert not torch.equal(first, second)
    for epoch in (first, second):
        assert torch.equal(epoch[epoch[:, 0].argsort()], x[x[:, 0].argsort()])


def test_a_training_goes_on_after_a_pickle() -> None:
    x, y = points()
    training = LogitTraining([start(3.0)])
    for _ in range(3):
        training.show(x, y)
    again = pickle.loads(pickle.dumps(training))
    for one in (training, again):
        one.show(x, y)
    assert torch.equal(training.nets()[0].w, again.nets()[0].w)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_training_goes_on_from_its_state_bit_for_bit(optimizer: str) -> None:
    x, y = points()
    nets = [start(1.0, seeds=(0, 1)), start(3.0, seeds=(2, 3), bias=False)]
    training = LogitTraining(nets, optimizer=optimizer)
    for _ in range(3):
        training.show(x, y)
    state = training.state()
    again = LogitTraining(nets, optimizer=optimizer)
    again.restore({name: t.clone() for name, t in state.items()})
    for one in (training, again):
        one.show(x, y)
        one.show(x[:7], y[:7])
    for one, other in zip(training.nets(), again.nets(), strict=True):
        assert torch.equal(one.w, other.w)
        assert torch.equal(one.v, other.v)
    # a state is a copy: the steps after it left it alone
    third = LogitTraining(nets, optimizer=optimizer)
    third.restore(state)
    assert not torch.equal(third.nets()[0].w, training.nets()[0].w)


def test_an_epoch_tells_the_mean_loss_on_the_way() -> None:
    x, y = points(10)
    training, twin = (LogitTraining([start(2.0, seeds=(0, 1))]) for _ in range(2))
    order = torch.randperm(10, generator=torch.Generator().manual_seed(2))
    shown = Points(training.start[0], x, y)
    ((epoch, losses),) = training.epochs(shown, lambda: order, batch=4, first=5, last=5)
    each = [twin.show(x[rows], y[rows]) * len(rows) / 10 for rows in order.split(4)]
    assert epoch == 5
    torch.testing.assert_close(losses, torch.stack(each).sum(0), rtol=1e-12, atol=0)


def test_a_loss_that_blows_up_is_told() -> None:
    x, y = points()
    with pytest.raises(RunError, match="smaller step"):
        train_logits(
            [start(3.0)], x, y, epochs=60, batch=40, step=1e6, optimizer="sgd", loss="exp",
            generator=torch.Generator(),
        )  # fmt: skip


def test_wrong_calls_are_told() -> None:
    x, y = points()
    order = torch.Generator()
    net = start(2.0)

    def call(nets: tuple[PolyReLUNet, ...] = (net,), x: Tensor = x, y: Tensor = y, **other) -> None:
        train_logits(nets, x, y, **{"epochs": 1, "batch": 4, "generator": order, **other})

    with pytest.raises(CallError, match="at least one"):
        call(nets=())
    with pytest.raises(CallError, match="normalize_input"):
        call(nets=(net, start(2.0, "raw")))
    with pytest.raises(CallError, match="one centre"):
        call(nets=(net, replace(net, centre=None)))
    with pytest.raises(CallError, match="NaN or inf"):
        call(x=x * float("nan"))
    with pytest.raises(CallError, match="0 to 2"):
        call(y=y + 1)
    with pytest.raises(CallError, match="39 labels"):
        call(y=y[1:])
    with pytest.raises(CallError, match="dimension, type and device"):
        call(x=x.float())
    with pytest.raises(CallError, match=r"step=0\.0"):
        call(step=0.0)
    with pytest.raises(CallError, match="weights"):
        call(weights=-torch.ones(len(x), dtype=x.dtype))
    with pytest.raises(CallError, match="batch=0"):
        call(batch=0)


def test_points_prepared_batch_by_batch_train_the_same_nets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = points()

    def trained() -> PolyReLUNet:
        order = torch.Generator().manual_seed(1)
        return train_logits([start(3.0)], x, y, epochs=2, batch=7, generator=order)[0]

    once = trained()
    monkeypatch.setattr("tacit.train.descent.logits.PREPARED_AT_ONCE", 0)
    torch.testing.assert_close(trained().w, once.w, rtol=1e-12, atol=1e-13)


def test_adam_is_algorithm_1_of_kingma_and_ba() -> None:
    generator = torch.Generator().manual_seed(3)
    gradients = torch.randn(6, 4, 3, generator=generator, dtype=torch.float64)
    found = torch.ones(4, 3, dtype=torch.float64)
    wanted, m, v = found.numpy().copy(), 0.0, 0.0
    update = updater("adam", 0.02)
    for t, gradient in enumerate(gradients, 1):
        g = gradient.numpy()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        wanted -= 0.02 * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8)
        update("net", [found], [gradient])
        assert found.numpy() == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("laid", ["expanded", "transposed", "strided"])
def test_adam_reads_gradients_as_they_are_laid_out(laid: str) -> None:
    plain = torch.arange(1.0, 7.0, dtype=torch.float64).view(3, 2)
    gradient = {
        "expanded": torch.tensor(2.0, dtype=torch.float64).expand(3, 2),
        "transposed": plain.T.contiguous().T,
        "strided": plain.repeat_interleave(2, 1)[:, ::2],
    }[laid]
    answers = []
    for shown in (gradient, gradient.contiguous()):
        found, update = torch.zeros(3, 2, dtype=torch.float64), updater("adam", 0.1)
        for scale in (1.0, -0.3, 0.5):
            update("net", [found], [shown * scale if scale != 1 else shown])
        answers.append(found)
    assert torch.equal(*answers)


def test_a_trained_net_has_no_dust() -> None:
    x, y = points()
    net = start(3.0)
    small = torch.tensor([1, 1, 1e-310, 1, 1, 1], dtype=torch.float64)
    training = LogitTraining([replace(net, w=net.w * small)], step=1e-320)
    training.show(torch.cat([x[:, :2], x[:, :1] * 0 + 0.3, x[:, 3:]], 1), y)
    assert training.shown()[0].w[..., 2].count_nonzero() > 0
    assert training.nets()[0].w[..., 2].count_nonzero() == 0
