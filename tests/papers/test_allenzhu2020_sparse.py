"""allenzhu2020, Figures 4, 5 and 12 (AlexNet): sparse reconstruction and sparse activation, real and made up."""

import math
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
import xarray as xr

from benches import new_bench, verdicts
from tacit.errors import CallError
from tacit.lab.parts import DiskParts
from tacit.measure.features import (
    active_shares,
    lasso,
    lasso_path,
    regression_error,
    sparsity_at_error,
    weight_at_error,
    zero_mean,
)
from tacit.nn.alexnet import AlexNet
from tacit.nn.residual import PreActResNet
from tacit.papers.allenzhu2020.deep.nets import alex_start, images_of, jobs_of
from tacit.papers.allenzhu2020.deep.settings import Alex, Deep
from tacit.papers.allenzhu2020.fig4.claims import claims as fig4_claims
from tacit.papers.allenzhu2020.fig4.settings import Rebuilt
from tacit.papers.allenzhu2020.fig5 import exhibit as fig5
from tacit.papers.allenzhu2020.fig5.claims import claims as fig5_claims
from tacit.papers.allenzhu2020.fig5.settings import Active
from tacit.papers.allenzhu2020.fig12.claims import claims as fig12_claims
from tacit.papers.allenzhu2020.fig12.exhibit import features_in, three_nets
from tacit.papers.allenzhu2020.fig12.settings import (
    ALEX_SPANNING,
    AlexReconstruction,
    Reconstruction,
)

LEAST = Active(dataset="digits", depth=10, width=1, train=64, batch=32, epochs=2, images=12)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# settings


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: AlexReconstruction(error=0.0), "error=0.0"),
        (lambda: AlexReconstruction(steps=0), "steps=0"),
        (lambda: AlexReconstruction(step=0), "step=0"),
        (lambda: Reconstruction(regression_steps=0), "regression_steps=0"),
        (lambda: Rebuilt(images=5), "images=5: it is at least 10 \\(shown\\)"),
        (lambda: Rebuilt(among=10), "among=10"),
        (lambda: Active(epochs=1), "epochs=1"),
        (lambda: Active(depth=18), "6n \\+ 4"),
        (lambda: Active(width=0), "width=0"),
        (
            lambda: fig5.run(replace(LEAST, images=10_000), new_bench()),
            "digits has 599 test images",
        ),
    ],
)
def test_settings_are_refused_in_one_line(make, said):
    with pytest.raises(CallError, match=said) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_both_halves_of_figure_12_keep_their_nets_settings():
    """Mixed-in settings of paths must not bring back the defaults of other nets."""
    alex, resnet = AlexReconstruction(), Reconstruction()
    for name, value in asdict(Alex()).items():
        assert getattr(alex, name) == value
    for name, value in asdict(Deep()).items():
        assert getattr(resnet, name) == value
    assert (alex.net, alex.in_span) == ("AlexNet", "5e-5")
    assert (resnet.net, resnet.in_span) == ("ResNet-34", "1e-9")
    assert (resnet.attacker, resnet.images, resnet.error) == ("l2one", 100, 0.1)


def test_a_wide_resnet_says_what_it_is():
    assert Active().regime.startswith("shortened: 30 epochs, Nesterov")
    assert Active(depth=16, side=16).regime.startswith("shortened: WideResNet-16-10 for WideResN")
    assert LEAST.regime.startswith("other data: digits")
    assert Active().training == Deep(depth=28, width=10, clean_epochs=30)


# reconstruction


def test_alexnets_filters_span_all_images_where_they_are_enough():
    """Stride 4: 4 x 4 pixels a channel for each position, so 48 of the paper's 64 filters, 16 for grey images."""
    x = zero_mean(torch.rand(2, 1, 12, 12, generator=generator()))
    enough, few = (
        regression_error(features_in(AlexNet(10, 1, width, generator=generator())), x)
        for width in (20, 14)
    )
    assert enough.error.max() < 1e-10
    assert few.error.min() > 1e-3


def test_a_weight_from_the_path_gives_the_error_that_was_asked_for():
    features = features_in(AlexNet(channels=1, width=16, generator=generator()))
    x = zero_mean(torch.rand(2, 1, 8, 8, generator=generator(1)))
    path = lasso_path(features, x, lambdas=10)
    weights = weight_at_error(path, 0.3)
    found = lasso(features, x, weights)
    assert found.solved.all()
    assert torch.allclose(found.error, torch.full((2,), 0.3).double(), atol=0.01)
    assert torch.allclose(found.sparsity, sparsity_at_error(path, 0.3), atol=0.03)
    rest = (found.decoded - x).square().sum((1, 2, 3)) / x.square().sum((1, 2, 3))
    assert torch.allclose(rest.double(), found.error, rtol=1e-4)


def test_the_lasso_of_an_orthogonal_dictionary_is_its_soft_threshold():
    """W = 1: y = sign(x) max(|x| - lambda/2, 0)."""
    x = torch.tensor([[3.0, -1.0, 0.2], [0.5, 2.0, -4.0]], dtype=torch.float64)
    weights = torch.tensor([1.0, 3.0], dtype=torch.float64)
    found = lasso(torch.eye(3, dtype=torch.float64), x, weights, gap=1e-12)
    expected = x.sign() * (x.abs() - weights[:, None] / 2).clamp_min(0)
    assert torch.allclose(found.decoded, expected, atol=1e-9)
    assert found.sparsity.tolist() == pytest.approx([2 / 3, 2 / 3])
    with pytest.raises(CallError, match="one above 0 for each of 2 targets"):
        lasso(torch.eye(3, dtype=torch.float64), x, weights - 1)


def test_an_error_that_is_not_reached_has_no_weight():
    x = zero_mean(torch.rand(2, 1, 8, 8, generator=generator()))
    features = features_in(AlexNet(channels=1, width=2, generator=generator()))
    assert weight_at_error(lasso_path(features, x, lambdas=3), 0.1).isnan().all()


def test_both_halves_of_figure_12_compare_three_nets():
    """AlexNet's robust net goes on from the clean one; all three differ in their first layer."""
    config = AlexReconstruction(**ALEX_SPANNING | {"train": 64, "clean_epochs": 1})
    bench = new_bench(scale="smoke")
    nets = three_nets(config, bench)
    assert list(nets) == ["random", "clean", "robust"]
    first = [net.convolutions[0].weight for net in nets.values()]
    assert torch.equal(first[0], alex_start(config, bench, images_of(config)).layers[0].weight)
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[1], first[2])
    assert (features_in(nets["robust"]).stride, features_in(nets["robust"]).padding) == (4, 5)


# active neurons


def test_active_neurons_are_counted_as_by_hand():
    """What each norm of a block puts out, computed step by step."""
    net = PreActResNet(10, 1, channels=1, generator=generator()).eval()
    for part in net.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(part.bias, generator=generator(2))
    x = torch.rand(300, 1, 8, 8, generator=generator(1))
    found = active_shares(fig5.before_relus, net, x)
    assert found.shape == (7, 300)
    maps, expected = net.begun(x), []
    with torch.no_grad():
        for block in net.blocks:
            expected += [block.bn1(maps), block.bn2(block.first(maps))]
            maps = block(maps)
        expected.append(net.norm(maps))
    by_hand = torch.stack([(each > 0).double().mean((1, 2, 3)) for each in expected])
    assert torch.allclose(found.double(), by_hand)
    assert not any(part._forward_hooks for part in net.modules())


def test_looking_needs_eval_mode_and_leaves_no_hook_behind():
    net = PreActResNet(10, 1)
    with pytest.raises(CallError, match="train mode"):
        active_shares(fig5.before_relus, net.train(), torch.rand(2, 3, 8, 8))
    with pytest.raises(CallError, match="images of 1 channels"):
        active_shares(fig5.before_relus, net.eval(), torch.rand(2, 1, 8, 8))
    assert not any(part._forward_hooks for part in net.modules())


def test_the_training_is_looked_at_before_and_after_each_epoch(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_MODELS", str(tmp_path / "models"))
    bench = replace(new_bench(scale="smoke"), parts=DiskParts(tmp_path))
    data = fig5.run(LEAST, bench).data
    assert data.share.dims == ("epoch", "layer")
    assert data.share.shape == (3, 7)
    assert data.each.shape == (3, 7, 12)
    for moment, epoch in {"start": 0, "first": 1, "end": 2}.items():
        mean = data.each.sel(moment=moment).mean("image")
        assert np.allclose(mean, data.share.sel(epoch=epoch), atol=1e-6)
    images = images_of(LEAST.training)
    (job,) = jobs_of(LEAST.training, bench, images, ("clean",)).values()
    x, _ = images.tested(LEAST.images, "cpu")
    begun = active_shares(fig5.before_relus, job.start.eval(), x)
    assert np.allclose(data.each.sel(moment="start"), begun)
    # what was watched is a part of the run: the net need not be there any more
    monkeypatch.setenv("TACIT_MODELS", str(tmp_path / "none"))
    again = fig5.run(LEAST, replace(bench, parts=DiskParts(tmp_path)))
    assert again.data.identical(data)
    assert not (tmp_path / "none").exists()


# claims on made-up data


def lassoed(**more: float) -> xr.Dataset:
    """Figure 12 as AlexNet might have it."""
    shares = {"random": 0.5, "clean": 0.2, "robust": 0.1, "clean_delta": 0.3, "robust_delta": 0.1}
    noise = np.random.default_rng(0).normal(0, 0.01, (5, 50))
    flat = {"regression": 2e-5, "regressed": 1.0} | more
    return xr.Dataset(
        {
            "at_error": (("case", "image"), np.array(list(shares.values()))[:, None] + noise),
            "solved": (("case", "weight", "image"), np.ones((5, 3, 50))),
            **{name: ("image", np.full(50, value)) for name, value in flat.items()},
        },
        coords={"case": list(shares)},
    )


def test_each_net_has_its_own_regression_error():
    """Remark 8.2 prints 5e-5 for AlexNet and 1e-9 for ResNet: 2e-5 is good for one of them."""
    alex, resnet = (
        {c.id: c for c in fig12_claims(lassoed(), config, new_bench())}
        for config in (AlexReconstruction(), Reconstruction())
    )
    assert (alex["span"].verdict, alex["span"].bar) == ("holds", "paper: below 5e-5")
    assert (resnet["span"].verdict, resnet["span"].bar) == ("differs", "paper: below 1e-9")
    assert "AlexNet" not in resnet["robust"].regime


def test_an_unfinished_regression_does_not_judge_against_the_paper():
    config = AlexReconstruction()
    found = {
        (error, done): verdicts(
            list(fig12_claims(lassoed(regression=error, regressed=done), config, new_bench()))
        )["span"]
        for error in (2e-5, 1e-3)
        for done in (0.0, 1.0)
    }
    assert found == {
        (2e-5, 0.0): "holds",  # the least error is below what was reached
        (2e-5, 1.0): "holds",
        (1e-3, 0.0): "not testable here",
        (1e-3, 1.0): "differs",
    }


def rebuilt(share: float = 0.035, kept: float = 0.95, reached: float = 1.0) -> xr.Dataset:
    """Figure 4 with that mean sparsity and that share of images still right."""
    noise = np.random.default_rng(0).normal(0, 0.005, 100)
    right = (np.arange(100) < 100 * kept).astype(float)
    ones = np.ones(100)
    values = {"sparsity": share + noise, "kept": right, "psnr": 22 * ones, "solved": ones}
    values["reached"] = (np.arange(100) < 100 * reached).astype(float)
    return xr.Dataset({name: ("image", each) for name, each in values.items()})


def test_sparsity_is_judged_by_the_printed_number_at_the_papers_size():
    def found(config: Rebuilt, **world: float) -> dict[str, str]:
        return verdicts(list(fig4_claims(rebuilt(**world), config, new_bench(scale="paper"))))

    here = Rebuilt()
    good = {"sparse": "holds", "recognised": "as predicted", "solved": "holds"}
    assert found(here) == good
    assert found(here, share=0.06)["sparse"] == "differs"
    assert found(here, share=0.0405)["sparse"] == "undecided"
    assert found(here, kept=0.5)["recognised"] == "not as predicted"
    assert found(here, reached=0.9)["sparse"] == "not testable here"
    small = {c.id: c for c in fig4_claims(rebuilt(), Rebuilt(side=16), new_bench())}
    assert small["sparse"].verdict == "not testable here"
    assert "--scale paper --device cuda" in small["sparse"].reason


def activity(start: float, first: float, end: float, *, odd: int = 0) -> xr.Dataset:
    """Shares of 25 ReLUs on 100 images; `odd` of them go the other way by as much."""
    moments = np.array([start, first, end])[:, None, None] * np.ones((3, 25, 100))
    moments[:, :odd] = 2 * start - moments[:, :odd]
    moments += np.random.default_rng(0).normal(0, 0.02, (3, 1, 100))
    share = moments.mean(2)
    return xr.Dataset(
        {
            "each": (("moment", "layer", "image"), moments),
            "share": (("epoch", "layer"), share),
            "right": ("image", np.ones(100)),
        },
        coords={"moment": ["start", "first", "end"], "epoch": range(3)},
    )


def test_activity_is_judged_as_it_falls():
    def found(data: xr.Dataset) -> dict[str, str]:
        return verdicts(list(fig5_claims(data, Active(), new_bench(scale="paper"))))

    assert found(activity(0.5, 0.4, 0.2)) == {
        "start": "holds",
        "first": "holds",
        "layers": "holds",
        "sparse": "as predicted",
    }
    rises = found(activity(0.5, 0.4, 0.6))
    assert {rises[id] for id in ("start", "first", "layers")} == {"differs"}
    assert rises["sparse"] == "not as predicted"
    early = found(activity(0.5, 0.3, 0.4))
    assert (early["start"], early["first"]) == ("holds", "differs")
    assert found(activity(0.5, 0.4, 0.2, odd=12))["layers"] == "undecided"
    small = fig5_claims(activity(0.5, 0.4, 0.2), Active(depth=16), new_bench())
    for claim in small:
        assert claim.verdict == "not testable here"
        assert "--scale paper --device cuda" in claim.reason
    assert math.isclose(float(activity(0.5, 0.4, 0.2).share.sel(epoch=0).mean()), 0.5, abs_tol=0.01)
