"""The claims of Figure 2's theory side."""

import xarray as xr

from tacit.lab import Bench, Claim, Expected
from tacit.papers._shared.universal import for_every
from tacit.papers.allenzhu2020._shared.claims import without_margin
from tacit.papers.allenzhu2020._shared.settings import regime_of
from tacit.papers.allenzhu2020.angles.settings import Turned

WHERE = "Section 1; Figure 2"
SMALL, LARGE = 0.15, 0.85


def claims(data: xr.Dataset, config: Turned, bench: Bench) -> tuple[Claim, ...]:
    """Four medians over the neurons that fire, their order, and how many fire."""
    bar = "ours: .15 for small and .85 for large, where the paper has 'such as' .2 and .8"
    judge = bench.claims(WHERE, source="words", bar=bar, regime=regime_of(config))
    why = (
        "neurons win features that they lean to at the start: the winning coordinate alone is about "
        "sqrt(2 log(m d)/d) of ||w0||, which falls below .15 only from d of about 1,500 on"
    )
    rows = (
        ("start.clean", "theta(w0, w): clean training turns features far", Expected(max=SMALL),
         "start_clean", why),
        ("start.pure", "theta(w0, w'): clean and adversarial training together turn features far",
         Expected(max=SMALL), "start_pure", why),
        ("clean.pure", "theta(w, w'): adversarial training turns them little", Expected(min=LARGE),
         "clean_pure", ""),
    )  # fmt: skip
    made = [
        for_every(judge, id, f"{text} (median over neurons that fire; {bare(data, name)})", expected,
                  data[name].median("neuron"), why)
        for id, text, expected, name, why in rows
    ]  # fmt: skip
    text = f"theta(w_i, w_j): features differ from one another (median over pairs; {bare(data, 'pair_median')})"
    made.append(for_every(judge, "pairs", text, Expected(max=SMALL), data.pair_median))
    above = (data.clean_pure > data.start_clean) & (data.clean_pure > data.start_pure)
    share = above.sum("neuron") / data.clean_pure.count("neuron")
    text = "theta(w, w') is above theta(w0, w) and theta(w0, w') (share of neurons)"
    order = judge.but(source="order", bar="ours: nine neurons in ten, for most")
    made.append(for_every(order, "order", text, Expected(min=0.9), share))
    text = "neurons that fire on some of 10,000 fresh points (share of all)"
    ours = judge.but(source="ours", bar="ours: a tenth, or too few tell")
    made.append(for_every(ours, "alive", text, Expected(min=0.1), data.alive))
    return tuple(made)


def bare(data: xr.Dataset, name: str) -> str:
    """The same without a margin: the mean over trainings of the median over neurons."""
    values = data[f"printed_{name}"]
    return without_margin(values.median("neuron") if "neuron" in values.dims else values)
