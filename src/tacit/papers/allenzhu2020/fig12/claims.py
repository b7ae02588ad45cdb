"""The claims of Figure 12 and Remark 8.2."""

from collections.abc import Iterator

import xarray as xr

from tacit.base.estimate import Certain
from tacit.lab import Bench, Claim, Expected, Judge
from tacit.papers.allenzhu2020.deep.claims import gain, positive
from tacit.papers.allenzhu2020.deep.settings import regime_of
from tacit.papers.allenzhu2020.fig12.settings import EitherNet

SOLVED = 0.99


def claims(data: xr.Dataset, config: EitherNet, bench: Bench) -> Iterator[Claim]:
    """Sparser in robust features; denser perturbations of the clean net; all of them in the span."""
    bar = f"paper: sparser; compared at a relative squared error of {config.error:g}"
    regime = regime_of(config)
    judge = bench.claims("Section 8.3, Figure 12", source="words", bar=bar, regime=regime)
    at = {str(name): data.at_error.sel(case=name) for name in data.case.values}

    def told(*names: str) -> str:
        shares = " against ".join(f"{float(at[name].mean()):.3f}" for name in names)
        return f"{shares} of the coefficients"

    text = f"images are sparser in robust features than in clean ones ({told('robust', 'clean')})"
    yield positive(judge, "robust", text, gain(at["clean"], at["robust"]))
    text = f"images are sparser in clean features than in random ones ({told('clean', 'random')})"
    yield positive(judge, "clean", text, gain(at["random"], at["clean"]))
    text = (
        "perturbations of the clean net are denser in robust features than those of the robust net "
    )
    text += f"({told('clean_delta', 'robust_delta')})"
    yield positive(judge, "delta", text, gain(at["clean_delta"], at["robust_delta"]))
    yield spanned(data, config, judge)
    text = "Lasso problems that are solved to a duality gap of 1e-4 (the share)"
    share = Certain(float(data.solved.mean()), "proved by the dual", data.solved.size)
    yield judge(
        "solved", text, Expected(min=SOLVED), share, source="check", bar=f"ours: {SOLVED:g}"
    )


def spanned(data: xr.Dataset, config: EitherNet, judge: Judge) -> Claim:
    """Remark 8.2; what conjugate gradients have not finished bounds the least error from above."""
    text = "perturbations of the clean net lie in the span of robust features (largest regression error)"
    number = judge.but(
        source="number", bar=f"paper: below {config.in_span}", where="Section 8.3, Remark 8.2"
    )
    worst, most = float(data.regression.max()), float(config.in_span)
    if worst > most and not bool(data.regressed.all()):
        reason = f"least squares was not solved to the end: the error is at most {worst:.1e}"
        return number.cannot("span", text, Expected(max=most), reason)
    found = Certain(worst, "least squares, solved for each image", data.regression.size)
    return number("span", text, Expected(max=most), found)
