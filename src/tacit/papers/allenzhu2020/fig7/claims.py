"""The claims of Figure 7: dense before, aligned with images after."""

from collections.abc import Iterator

import xarray as xr

from tacit.lab import Bench, Claim
from tacit.papers.allenzhu2020.deep.claims import gain, positive
from tacit.papers.allenzhu2020.deep.settings import regime_of
from tacit.papers.allenzhu2020.fig7.settings import Perturbations


def claims(data: xr.Dataset, config: Perturbations, bench: Bench) -> Iterator[Claim]:
    """Three numbers, each compared image by image."""
    bar = "ours: 'dense' and 'aligned with actual images' in numbers; more is more"
    judge = bench.claims("Section 5.1, Figure 7", source="words", bar=bar, regime=regime_of(config))
    clean, robust = (data.sel(net=name) for name in ("clean", "robust"))
    both = (clean, robust)

    def means(name: str) -> str:
        return " against ".join(f"{float(each[name].mean()):.2f}" for each in reversed(both))

    text = f"perturbations of the robust net have more of coarse shapes ({means('coarse')} of their energy)"
    yield positive(judge, "coarse", text, gain(robust.coarse, clean.coarse))
    text = f"perturbations of the robust net vary less from pixel to pixel ({means('variation')})"
    yield positive(judge, "variation", text, gain(clean.variation, robust.variation))
    text = "they point more from the image's class to the one that is seen (cosine with the difference of means, "
    text += f"{means('aligned')})"
    yield positive(judge, "aligned", text, gain(robust.aligned, clean.aligned))
