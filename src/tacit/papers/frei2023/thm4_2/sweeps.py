"""What is varied in `frei2023.thm4.2`: each sweep is a list of settings, and a setting is trained once."""

import math
from dataclasses import replace

from tacit.papers.frei2023._shared.trained import Setting
from tacit.papers.frei2023.thm4_2.settings import Flipped

SWEEPS = ("K", "D", "positive", "noise", "inits", "depth", "scout")  # and "random", on its own
DEEPER = (1.0, 4.0)  # times the log-loss


def sweep(config: Flipped, name: str) -> list[Setting]:
    """The settings of one sweep, in order; "K" and "D" run once for each sigma, one after the other."""
    low, high = min(config.sigma), max(config.sigma)

    def at(D: int, K: int, sigma: float) -> Setting:
        """The usual net at these sizes."""
        return Setting(D, K, K // 2, sigma, config.init, config.log_loss, config.h)

    few, side = config.few, config.at
    usual = at(side, few, low)
    sweeps = {
        "K": [at(config.D, K, sigma) for sigma in config.sigma for K in config.K],
        "D": [at(D, few, sigma) for sigma in config.sigma for D in config.dims],
        "positive": [replace(at(side, config.many, low), K1=K1) for K1 in config.positive],
        "random": [replace(at(D, math.isqrt(D), 1.0), means="sphere") for D in config.random],
        "noise": [at(side, few, sigma) for sigma in config.noise],
        "inits": [
            replace(at(side, few, sigma), init=init)
            for sigma in dict.fromkeys((low, high))
            for init in config.inits
        ],
        "depth": [replace(usual, log_loss=config.log_loss * by) for by in DEEPER],
        "scout": [usual, replace(usual, scout=False)],
    }
    return sweeps[name]


def every(config: Flipped) -> list[Setting]:
    """All settings, each once."""
    return list(dict.fromkeys(setting for name in SWEEPS for setting in sweep(config, name)))


def places(config: Flipped, name: str) -> list[int]:
    """Where the settings of a sweep are among all."""
    order = {setting: i for i, setting in enumerate(every(config))}
    return [order[setting] for setting in sweep(config, name)]
