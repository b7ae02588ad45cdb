"""What `li2025.lemma5` draws beside its trainings: many starts (A.10, A.12), and steps inside the assumptions."""

import math

import numpy as np
import torch
import xarray as xr

from tacit.lab import Bench
from tacit.papers.li2025._shared.coefficients import biases
from tacit.papers.li2025._shared.compact import binary_net, compact_problem
from tacit.papers.li2025._shared.starts import activated, enough_points
from tacit.papers.li2025._shared.synthetic import train_binary
from tacit.papers.li2025.lemma5.settings import Coefficients


def starts(config: Coefficients, bench: Bench) -> xr.Dataset:
    """A.12: in how many of many starts each neuron has n/(3km^2) active points in each cluster; and A.10's sizes.

    Only products with the 2m first weights count: the weights' k coordinates along the centres, the triangle that
    Gram-Schmidt makes of the rest (Bartlett 1933, as in `compact`), and noises in those k + 2m coordinates.
    """
    d, k, n, h = config.d, config.k, config.n, 2 * config.m
    rng = np.random.default_rng(int(torch.randint(2**62, (), generator=bench.generator("starts"))))
    reached, sizes, largest = 0, [], []
    for _ in range(config.starts):
        below = np.tril(rng.standard_normal((h, h)), -1)
        w = np.hstack(
            [
                rng.standard_normal((h, k)),
                below + np.diag(rng.chisquare(d - k - np.arange(h)) ** 0.5),
            ]
        )
        x, z = rng.standard_normal((n, k + h)), rng.integers(k, size=n)
        x[np.arange(n), z] += math.sqrt(d)
        b = rng.standard_normal((h, 1))  # in units of sigma_w = sigma_b, as w
        active = w @ x.T + b >= 0
        reached += int((active @ np.eye(k)[z]).min() >= n / (3 * k * config.m**2))
        sizes.append(np.abs(np.linalg.norm(w, axis=1) - math.sqrt(d)).max() / (2 * math.log(d)))
        largest.append(np.abs(b).max())
    many = n_of_A12(config)
    enough = activated(h, k, many, many / (3 * k * config.m**2), config.starts, rng)
    return xr.Dataset(
        {
            "reached": ((), reached),
            "reached_many": ((), enough),
            "A10": ("start", np.array(sizes)),
            "largest_bias": ("start", np.array(largest)),
        }
    )


def n_of_A12(config: Coefficients) -> int:
    """The points at which A.12's promise is half of its limit, or the setting's own, whichever are more."""
    m, k = config.m, config.k
    return max(enough_points(m, 2 * m * k, 9 * k * m**2), config.n)


def inside(config: Coefficients, bench: Bench, seed: int) -> xr.Dataset:
    """d = k^10, n = k^7, m = k, eta = 1/d^2, sigma_w^2 = eta/k^5: is each own neuron active after one step?

    And Lemmas A.13, A.14 before it: the largest part that a point takes of its bounds.
    """
    k = config.inside
    d, n, m = k**10, k**7, k
    eta = d**-2
    sigma_w = math.sqrt(eta * k**-5)
    stream = bench.generator("inside", seed=seed)
    problem = compact_problem(d, k, (k + 1) // 2, n, 2 * m, stream)
    start = binary_net(problem.rows, sigma_w, stream, torch.float64)
    bound = eta * math.sqrt(d) / (n * m)
    after = train_binary(start, problem.train, eta, 1).net
    before, z = (net.w @ problem.train.x.T + biases(net).unsqueeze(1) for net in (start, after))
    pull = torch.sigmoid(-problem.train.y * start(problem.train.x))
    own = start.v.sign().unsqueeze(1) == problem.train.y
    return xr.Dataset(
        {
            "inside_active": ((), float((z[own] >= 0).double().mean())),
            "inside_A13": ((), float(before.abs().max()) / bound),
            "inside_A14": ((), float(max(1.5 * pull.max(), 1 / (3 * pull.min())))),
        }
    )
