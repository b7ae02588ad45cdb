"""Flags of a robustness audit, in the spirit of AutoAttack's: when each is raised, and what it means.

An attack that fails proves nothing, and some failures can be seen. Each kind of flag has a number that is
measured and a limit; the flag is raised where the number is above the limit. A certificate above an attack has no
flag: it is a bug, and ends the audit (`tacit.measure.robustness.consistent`).
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of flag: raised `when` its number is above `limit`; what that `means`."""

    when: str
    means: str
    limit: float = 0.0


@dataclass(frozen=True)
class Flag:
    """A flag that was raised: `raised` says when and gives the number, `value` is the number."""

    name: str
    raised: str
    means: str
    value: float


KINDS: dict[str, Kind] = {
    "gradient-vanishes": Kind(
        "the gradient of the margin is zero at more than 10% of the points that are right, where a radius "
        "is open",
        "gradient attacks see nothing there; attacked accuracy may be too high",
        0.1,
    ),
    "loss-not-increasing": Kind(
        "the margin was not lowered at the largest radius at more than 10% of the points that are right, where a "
        "radius is open",
        "the attack is stuck (saturated or masked gradients); attacked accuracy may be too high",
        0.1,
    ),
    "random-beats-gradient": Kind(
        "random starts broke more than 5% of the points that are right at a smaller radius than gradient starts",
        "the loss surface is rough or its gradients mislead; more starts would probably break more",
        0.05,
    ),
    "not-monotone": Kind(
        "the attack broke more than 1% of the points that are right at a radius and failed at a larger one",
        "the attack depends on luck; a point counts as broken from its smallest success on",
        0.01,
    ),
    "output-random": Kind(
        "two calls on the same points differ at more than 0% of them",
        "the model is random; radii of single outputs mean little, an expected output should be audited",
    ),
    "universal-beats-attack": Kind(
        "one perturbation for all broke more than 0% of the points that are right where the attack had not",
        "the attack is weak there; what broke counts, and attacked accuracy may still be too high",
    ),
    "queries-beat-gradients": Kind(
        "queries alone broke more than 0% of the points (at most 50) that gradients left at the largest radius",
        "the gradients are masked; only those tried count as broken, so attacked accuracy is too high",
    ),
    "queries-only": Kind(
        "more than 0% of the points were attacked without gradients",
        "an attack by queries is weaker; attacked accuracy is probably too high",
    ),
    "no-certificate": Kind(
        "more than 0% of the points that are right have no certificate",
        "the lower end is 0 there; only the attacked end says anything",
    ),
}


def raised_flags(values: Mapping[str, float]) -> tuple[Flag, ...]:
    """The flags whose number, a share of points, is above the limit of its kind, in the order of `KINDS`."""
    return tuple(
        Flag(name, f"{kind.when}: {values[name]:.1%}", kind.means, values[name])
        for name, kind in KINDS.items()
        if values.get(name, 0.0) > kind.limit
    )
