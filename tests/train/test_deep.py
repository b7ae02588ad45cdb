"""Deep training: batches, schedule and steps against torch's own, resume bit for bit, what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import jaxtyping
import pytest
import torch
from torch import nn

from host_reads import NoHostReads
from tacit.attack.inner import Ball
from tacit.base.recording import WARM
from tacit.data.images import load_images
from tacit.errors import CallError, RunError
from tacit.nn import PolyHeadResNet18, PreActResNet, ResNet18
from tacit.train import Recipe, Watch, fit
from tacit.train.deep import fit as fitting
from tacit.train.deep import step as stepping
from tacit.train.deep.pictures import epoch_of, shelf_of
from tacit.train.deep.step import Training
from tacit.train.deep.views import attacked_view, training_view

DRAWS = torch.Generator().manual_seed(0)
X = torch.randint(256, (50, 8, 8, 3), dtype=torch.uint8, generator=DRAWS)
Y = torch.randint(4, (50,), generator=DRAWS)
LINF = Ball(math.inf, 0.05, 2, 0.6, random_start=True)
SMOOTH = Ball(2, 0.3, 2, 0.6, sigma=0.1, draws=2)


def net(seed: int = 0) -> PreActResNet:
    return PreActResNet(10, 1, classes=4, generator=torch.Generator().manual_seed(seed))


class Kept:
    """A store of checkpoints: every epoch is kept, and the training may be killed after one."""

    def __init__(self, until: int = 10**9) -> None:
        self.held: tuple[int, dict[str, torch.Tensor]] | None = None
        self.until = until

    def last(self):
        return self.held and (self.held[0], dict(self.held[1]))

    def offer(self, epoch, state):
        self.held = epoch, state()
        if epoch == self.until:
            raise KeyboardInterrupt


# ---- batches


def test_an_epoch_shows_every_image_once_but_the_rest():
    epoch = epoch_of(50, Recipe(epochs=1, batch=16), torch.Generator().manual_seed(1))
    assert epoch.order.shape == (3, 16)
    assert len(epoch.order.unique()) == 48
    assert epoch.moves[..., :2].min() == 0
    assert epoch.moves[..., :2].max() == 8
    assert set(epoch.moves[..., 2].unique().tolist()) == {0, 1}


def test_a_batch_is_shifted_and_mirrored_as_one_would_by_hand():
    recipe = Recipe(epochs=1, batch=16, crop=2)
    shelf = shelf_of(X, Y, recipe, "cpu")
    epoch = epoch_of(50, recipe, torch.Generator().manual_seed(1))
    x, y = shelf.batch(epoch.order[0], epoch.moves[0])
    for i, (row, (down, across, mirrored)) in enumerate(
        zip(epoch.order[0], epoch.moves[0].tolist(), strict=True)
    ):
        image = X[row].permute(2, 0, 1).float() / 255
        border = torch.zeros(3, 12, 12)
        border[:, 2:10, 2:10] = image
        by_hand = border[:, down : down + 8, across : across + 8]
        by_hand = by_hand.flip(2) if mirrored else by_hand
        torch.testing.assert_close(x[i], by_hand)
        assert y[i] == Y[row]


def test_floats_are_the_same_images():
    recipe = Recipe(epochs=1, batch=16)
    floats = shelf_of(X.permute(0, 3, 1, 2).float() / 255, Y, recipe, "cpu")
    rows, still = torch.arange(5), torch.full((5, 3), 4)
    one, other = (s.batch(rows, still)[0] for s in (floats, shelf_of(X, Y, recipe, "cpu")))
    torch.testing.assert_close(one, other)


# ---- schedules and steps


@pytest.mark.parametrize("schedule", ["cosine", "drops", "constant"])
def test_step_sizes_are_those_of_torch(schedule):
    recipe = Recipe(
        epochs=6, step=0.3, schedule=schedule, drops=(2, 4) if schedule == "drops" else ()
    )
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    scheduler = {
        "cosine": lambda: torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 6 * 5),
        "drops": lambda: torch.optim.lr_scheduler.MultiStepLR(optimiser, [10, 20]),
        "constant": lambda: torch.optim.lr_scheduler.ConstantLR(optimiser, 1.0),
    }[schedule]()
    expected = []
    for _ in range(30):
        expected.append(scheduler.get_last_lr()[0])
        optimiser.step()
        scheduler.step()
    assert recipe.step_sizes(5) == pytest.approx(expected)


def test_warm_up_and_growth_are_linear():
    sizes = Recipe(epochs=4, step=1.0, schedule="constant", warmup=2).step_sizes(5)
    assert sizes[:10] == pytest.approx([(k + 1) / 10 for k in range(10)])
    assert sizes[10:] == [1.0] * 10
    radii = Recipe(epochs=4, ball=LINF, growth=2).radii(5)
    assert radii[:10] == pytest.approx([(k + 1) / 10 for k in range(10)])
    assert radii[10:] == [1.0] * 10
    assert Recipe(epochs=1, ball=LINF).radii(2) == [1.0, 1.0]


@pytest.mark.parametrize("nesterov", [False, True])
def test_weights_move_as_by_torchs_sgd(nesterov):
    recipe = Recipe(epochs=2, batch=16, step=0.02, nesterov=nesterov, decay=1e-2, warmup=1)
    mine = fit(net(), X, Y, recipe, seed=3, device="cpu")
    other = net().train()
    optimiser = torch.optim.SGD(
        other.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-2, nesterov=nesterov
    )
    shelf, sizes, losses = shelf_of(X, Y, recipe, "cpu"), recipe.step_sizes(3), []
    for number in range(2):
        epoch = epoch_of(50, recipe, fitting.stream(3, "order", number))
        for k in range(3):
            optimiser.param_groups[0]["lr"] = sizes[3 * number + k]
            x, y = shelf.batch(epoch.order[k], epoch.moves[k])
            loss = nn.functional.cross_entropy(other(x.contiguous()), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
    # by the way that each went: batch norm of few images makes more of a rounding than a fixed bound allows
    states = (each.state_dict() for each in (net(), other, mine.module))
    for (name, begun), theirs, ours in zip(
        next(states).items(), *map(dict.values, states), strict=True
    ):
        if begun.is_floating_point():
            assert (ours - theirs).norm() <= 0.01 * (theirs - begun).norm(), name
    assert mine.losses.tolist() == pytest.approx(
        [sum(losses[:3]) / 3, sum(losses[3:]) / 3], rel=1e-3
    )


def test_the_radius_grows_with_the_steps(monkeypatch):
    asked = []
    real = stepping.perturbation
    monkeypatch.setattr(
        stepping, "perturbation", lambda *a, **k: asked.append(float(k["scale"])) or real(*a, **k)
    )
    fit(net(), X, Y, Recipe(epochs=2, batch=16, ball=SMOOTH, growth=2), device="cpu")
    assert asked == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1.0])


def power_net() -> ResNet18:
    return ResNet18(4, width=8, power=2)


def head_net() -> PolyHeadResNet18:
    return PolyHeadResNet18(4, width=8, hidden=8)


@pytest.mark.parametrize(
    ("ball", "make"),
    [(None, net), (LINF, net), (SMOOTH, net), (LINF, power_net), (LINF, head_net)],
)
def test_a_step_reads_nothing_on_the_host(ball, make):
    recipe = Recipe(epochs=1, batch=16, ball=ball)
    training = Training(make(), shelf_of(X, Y, recipe, "cpu"), recipe, "cpu", deterministic=False)
    training.begin(0, epoch_of(50, recipe, fitting.stream(0)), 0)
    with NoHostReads():
        training.step()
    assert float(training.losses[0]) > 0


# ---- views


@pytest.mark.parametrize("ball", [None, LINF])
def test_a_training_may_be_shorter_than_the_warming_up_of_its_recording(ball):
    recipe = Recipe(epochs=1, batch=50, ball=ball)
    training = Training(
        net(), shelf_of(X, Y, recipe, "cpu", 255), recipe, "cpu", deterministic=False
    )
    for _ in range(WARM):
        training.step()
    assert int(training.now) == WARM > recipe.epochs * training.count


@pytest.mark.parametrize(("side", "may"), [(8, False), (16, True), (32, True)])
def test_images_that_end_as_one_pixel_are_not_compiled(side, may):
    x = torch.zeros(4, side, 32, 3, dtype=torch.uint8)
    shelf = shelf_of(x, torch.zeros(4, dtype=torch.long), Recipe(epochs=1, batch=4), "cpu")
    assert stepping.may_compile(shelf) == may


def test_views_share_what_moves():
    module = net()
    view, attacked = training_view(module), attacked_view(module)
    with torch.no_grad():
        module.stem.weight.add_(1)
        module.norm.running_mean.add_(1)
    for other in (view, attacked):
        assert torch.equal(other.stem.weight, module.stem.weight)
        assert torch.equal(other.norm.running_mean, module.norm.running_mean)
    assert not any(p.requires_grad for p in attacked.parameters())
    assert not attacked.training
    assert all(p.requires_grad for p in module.parameters())


def test_an_attack_leaves_the_batch_statistics_alone():
    """One step with an attack of radius 0 is a clean step, whatever the attack looked at."""
    still = Ball(math.inf, 0.0, 3, 1.0)
    clean, attacked = (
        fit(net(), X, Y, Recipe(epochs=1, batch=16, ball=ball), device="cpu").module
        for ball in (None, still)
    )
    for one, other in zip(clean.state_dict().values(), attacked.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other)


# ---- resume


@pytest.mark.parametrize("ball", [None, LINF, SMOOTH])
def test_a_killed_training_goes_on_bit_for_bit(ball):
    recipe = Recipe(epochs=4, batch=16, ball=ball, growth=1.0 if ball else 0.0)
    whole = fit(net(), X, Y, recipe, seed=5, device="cpu")
    store = Kept(until=2)
    with pytest.raises(KeyboardInterrupt):
        fit(net(), X, Y, recipe, seed=5, device="cpu", checkpoints=store)
    store.until = 10**9
    # whatever the module is when it is given again, the checkpoint has its weights
    rest = fit(net(seed=9), X, Y, recipe, seed=5, device="cpu", checkpoints=store)
    assert torch.equal(whole.losses, rest.losses)
    for one, other in zip(
        whole.module.state_dict().values(), rest.module.state_dict().values(), strict=True
    ):
        assert torch.equal(one, other)


def test_other_seeds_make_other_batches():
    recipe = Recipe(epochs=1, batch=16)
    one, other = (fit(net(), X, Y, recipe, seed=s, device="cpu").module for s in (0, 1))
    assert not torch.equal(one.stem.weight, other.stem.weight)


# ---- what is watched


def stem_of(module: nn.Module) -> torch.Tensor:
    assert not module.training
    return module.stem.weight


def test_what_is_watched_is_the_module_after_each_epoch():
    recipe = Recipe(epochs=2, batch=16, schedule="constant")
    fitted = fit(net(), X, Y, recipe, seed=5, device="cpu", watch=Watch(stem_of))
    once = fit(net(), X, Y, replace(recipe, epochs=1), seed=5, device="cpu")
    by_hand = [net(), once.module, fitted.module]
    assert torch.equal(fitted.watched, torch.stack([each.stem.weight.detach() for each in by_hand]))
    assert torch.equal(fitted.losses[:1], once.losses)
    assert once.watched is None


def test_a_training_ends_when_it_is_enough_and_a_killed_one_too():
    """Killed right after the epoch that is enough, it is not trained further."""
    recipe = Recipe(epochs=4, batch=16)
    at = fit(net(), X, Y, recipe, seed=5, device="cpu", watch=Watch(stem_of)).watched[2]
    watch = Watch(stem_of, lambda stem: torch.equal(stem, at))
    ended = fit(net(), X, Y, recipe, seed=5, device="cpu", watch=watch)
    assert (len(ended.losses), len(ended.watched)) == (2, 3)
    assert torch.equal(ended.module.stem.weight, at)
    store = Kept(until=2)
    with pytest.raises(KeyboardInterrupt):
        fit(net(), X, Y, recipe, seed=5, device="cpu", watch=watch, checkpoints=store)
    again = fit(net(), X, Y, recipe, seed=5, device="cpu", watch=watch, checkpoints=store)
    assert torch.equal(again.watched, ended.watched)
    assert torch.equal(again.module.stem.weight, at)


# ---- learning, and what is frozen


@pytest.mark.slow
def test_digits_are_learned_and_adversarial_training_makes_them_robust():
    from tacit.measure.attacked import kept_right

    train, test = load_images("digits"), load_images("digits", "test")
    x, y = torch.from_numpy(train.x[:480]), torch.from_numpy(train.y[:480])
    tx = torch.from_numpy(test.x[:200]).permute(0, 3, 1, 2).float() / test.top
    ty = torch.from_numpy(test.y[:200])
    ball, found = Ball(math.inf, 0.15, 3, 0.6, random_start=True), {}
    for name, attacker in (("clean", None), ("robust", ball)):
        start = PreActResNet(10, 1, channels=1, generator=torch.Generator().manual_seed(0))
        recipe = Recipe(
            epochs=6, batch=60, nesterov=True, crop=0, flip=False, ball=attacker, growth=2
        )
        module = fit(start, x, y, recipe, device="cpu", top=train.top).module
        found[name] = [float(kept_right(module, tx, ty, b).mean()) for b in (None, ball)]
    assert found["clean"][0] > 0.9
    assert found["robust"][1] > found["clean"][1] + 0.15


def test_frozen_layers_stay():
    module = net().freeze_below(4)
    before = {name: t.clone() for name, t in module.state_dict().items()}
    fit(module, X, Y, Recipe(epochs=1, batch=16), device="cpu")
    after = module.state_dict()
    for name in ("stem.weight", "blocks.0.bn1.running_mean", "blocks.0.conv2.weight"):
        assert torch.equal(before[name], after[name]), name
    assert not torch.equal(before["blocks.1.conv1.weight"], after["blocks.1.conv1.weight"])


def test_narrow_shortcuts_are_trained():
    """torch 2.13 ends the process where these filters lie with their channels last on a CPU."""
    module = ResNet18(classes=4, width=4)
    assert float(fit(module, X, Y, Recipe(epochs=1, batch=25), device="cpu").losses[0]) > 0


def test_any_module_and_float_images():
    module = nn.Sequential(nn.Flatten(), nn.Linear(192, 4))
    fitted = fit(
        module, X.permute(0, 3, 1, 2).float() / 255, Y, Recipe(epochs=2, batch=25), device="cpu"
    )
    assert fitted.module is module
    assert not module.training
    assert len(fitted.losses) == 2
    assert fitted.images_per_second > 0


# ---- bad input


def test_a_loss_that_is_no_number_ends_the_training_at_its_step():
    store = Kept()
    recipe = Recipe(epochs=3, batch=16, schedule="drops", drops=(1,), step=0.1)
    bad = X.permute(0, 3, 1, 2).float() / 255

    class Breaks(nn.Module):
        """Gives NaN from the fifth training step on."""

        def __init__(self) -> None:
            super().__init__()
            self.linear, self.calls = nn.Linear(192, 4), [0]

        def forward(self, x):
            self.calls[0] += self.training
            return self.linear(x.flatten(1)) * (math.nan if self.calls[0] >= 5 else 1.0)

    with pytest.raises(RunError, match=r"no number at step 2 of epoch 2: lower step=0\.1"):
        fit(Breaks(), bad, Y, recipe, device="cpu", checkpoints=store)
    assert store.held[0] == 1
    assert all(t.isfinite().all() for t in store.held[1].values())


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (X[:10], Y[:10], "batch=16: there are 10 images"),
        (X.permute(0, 3, 1, 2).float(), Y, r"pixels are in \[0, 1\]"),
        (X.long(), Y, "images are bytes"),
        (X[0], Y, "images are"),
        (X, Y + 3, "needs 0..3"),
        (X[..., :1], Y, "images of 1 channels: this net was made for 3"),
        (torch.full((50, 3, 8, 8), math.nan), Y, "NaN"),
    ],
)
def test_images_and_labels_that_are_refused(x, y, words):
    with pytest.raises(CallError, match=words):
        fit(net(), x, y, Recipe(epochs=1, batch=16), device="cpu")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epochs": 0}, "epochs=0"),
        ({"epochs": 1, "step": 0.0}, "step=0.0"),
        ({"epochs": 1, "momentum": 1.0}, "momentum=1.0"),
        ({"epochs": 1, "schedule": "drops"}, "drops="),
        ({"epochs": 1, "growth": -1.0}, "growth=-1"),
    ],
)
def test_recipes_that_are_refused(settings, words):
    with pytest.raises(CallError, match=words):
        Recipe(**settings)


def test_a_gpu_that_is_too_small_is_told_the_batch_that_fits(monkeypatch):
    def full(_self):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Training, "ready", full)
    with pytest.raises(RunError, match="batch=16 does not fit into the GPU's memory; 8 does"):
        fit(net(), X, Y, Recipe(epochs=1, batch=16, ball=LINF), device="cpu")


# ---- on a GPU


@pytest.mark.cuda
@pytest.mark.filterwarnings("ignore")  # of torch's compiler, at itself
@pytest.mark.parametrize("ball", [None, LINF, SMOOTH])
def test_the_recorded_step_is_the_plain_one(ball, monkeypatch):
    """Float32 steps next to the recorded ones in bfloat16: the losses agree to its precision."""
    # the compiler does not see through the checks of annotations
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    recipe = Recipe(epochs=2, batch=16, step=0.01, ball=ball)
    gpu, cpu = (fit(net(), X, Y, recipe, seed=2, device=d).losses for d in ("cuda", "cpu"))
    torch.testing.assert_close(gpu, cpu, rtol=0.03, atol=0.03)


@pytest.mark.cuda
@pytest.mark.parametrize("ball", [None, LINF, SMOOTH])
def test_deterministic_on_a_gpu_repeats_and_resumes_bit_for_bit(ball):
    recipe = Recipe(epochs=4, batch=16, ball=ball)
    whole = fit(net(), X, Y, recipe, seed=5, device="cuda", deterministic=True)
    store = Kept(until=2)
    with pytest.raises(KeyboardInterrupt):
        fit(net(), X, Y, recipe, seed=5, device="cuda", deterministic=True, checkpoints=store)
    store.until = 10**9
    rest = fit(net(9), X, Y, recipe, seed=5, device="cuda", deterministic=True, checkpoints=store)
    for one, other in zip(
        whole.module.state_dict().values(), rest.module.state_dict().values(), strict=True
    ):
        assert torch.equal(one, other)
