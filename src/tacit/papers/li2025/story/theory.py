r"""What theory says of the radii, to first order in sigma/sqrt(d), before anything is trained.

At the centres: sqrt(d/k) for averages (li2025, Theorem 4.6), sqrt(d/2) for the Bayes rule and for decoupled
features, sqrt(d)/2 for f_dec where f = 0 breaks. A test point adds noise:

- *the nearest of q opposite clusters*: with standard normal e, e_j along the centres, the plane between the own
  cluster and j is at sqrt(d/2) + sigma (e - e_j)/sqrt(2), and the least over j takes E max_j e_j =: M(q) off:
  sqrt(d/2) (1 - sigma M(q)/sqrt(d)). Averages have one plane, sqrt(d/k) + sigma e: the median stays.
- *learned directions*: the mean of N = n/k points of a cluster is mu + noise of norm^2 sigma^2 d/N. The test
  point does not see that noise, the norm does: a factor 1/sqrt(1 + sigma^2/N), for averages too.
- *noise added to the training points* averages out over points and steps: nothing changes.
- *1-NN*: the cell of an opposite training point j is entered when all N own points of the cluster are left
  behind. With -delta = a mu_1 - b mu_2 - c xi_j + e sum_i xi_i every constraint reads a + b + sigma (c + e) = 1,
  the cost is d (a^2 + b^2 + c^2 + N e^2), and the least is d/(2 + sigma^2 (1 + 1/N)). Of the n' opposite points
  the most favourable is chosen: relative to that, cell j varies by -sigma <x - mu_2, xi_j>/d + sigma^2
  (|xi_j|^2/d - 1) (1/2 - 1/(2 s)), s = 2 + sigma^2: standard deviation tau = sqrt(sigma^2 s + 2 sigma^4 (1/2 -
  1/(2s))^2) / sqrt(d), and the least over n' cells is M(n') tau shorter.

For PolyReLU nets this is min2024's Conjecture 1 with its Theorem 3: noise there is sigma <= 0.3.
"""

import math

import numpy as np
from scipy.stats import norm

from tacit.papers.li2025.story.settings import Story

FIRST_ORDER = 0.2  # a larger correction is not the end of the series


def expected_max(q: int) -> float:
    """E max of q independent standard normals: the integral of 1 - Phi^q over x > 0 minus Phi^q over x < 0."""
    x = np.linspace(0, 12, 12_001)
    tail = -np.expm1(q * norm.logcdf(x)) - np.exp(q * norm.logcdf(-x))
    return float(np.trapezoid(tail, x))


def over_classes(config: Story, opposite: float) -> float:
    """M(number of opposite clusters times `opposite`), meaned over the test points of both classes."""
    k, k1 = config.k, config.k1
    ways = [expected_max(max(round(q * opposite), 1)) for q in (k - k1, k1)]
    return (k1 * ways[0] + (k - k1) * ways[1]) / k


def predictions(config: Story) -> dict[str, float]:
    """The median radius of each classifier for which theory gives one; others are not in it."""
    d, k, sigma, N = config.d, config.k, config.sigma, config.n / config.k
    near, far = landmarks(config)
    lost = sigma * over_classes(config, 1) / math.sqrt(d)
    found: dict[str, float] = {}
    if max(lost, sigma**2 / N) > FIRST_ORDER:
        return found
    if config.cosine == 0 or 2 * config.k1 == k:
        found["f_FA"] = near
    found["bayes"] = far * (1 - lost / math.sqrt(1 - config.cosine))
    if config.cosine != 0:
        return found
    found |= {"f_dec": math.sqrt(d) / 2, "strict": far * (1 - lost)}
    if config.weights:
        return found
    learned = 1 / math.sqrt(1 + sigma**2 / N)
    found |= {"two": near * learned, "noisy": near * learned}
    found |= dict.fromkeys(("classes", "poly"), far * (1 - lost) * learned)
    s = 2 + sigma**2
    tau = math.sqrt(sigma**2 * s + 2 * sigma**4 * (0.5 - 0.5 / s) ** 2) / math.sqrt(d)
    chosen = tau * over_classes(config, N)
    if chosen <= FIRST_ORDER:
        found["nearest"] = math.sqrt(d / (2 + sigma**2 * (1 + 1 / N))) * (1 - chosen)
    return found


def landmarks(config: Story) -> tuple[float, float]:
    """sqrt(d/k) and sqrt(d/2), times sqrt(1 - cosine): from a centre to the plane of the averages, and half the
    distance of two centres."""
    scale = math.sqrt(config.d * (1 - config.cosine))
    return scale / math.sqrt(config.k), scale / math.sqrt(2)
