"""What is read off a classifier and a sample."""

from tacit.base.estimate import Estimate
from tacit.base.statistics import (
    critical_radius,
    lower_limit,
    mean_of,
    proportion,
    rank_correlation,
    upper_limit,
)
from tacit.measure.alignment import alignment_field
from tacit.measure.attacked import kept_right
from tacit.measure.distance.algorithm1 import Estimated, algorithm1
from tacit.measure.distance.function import Distance, function_distance
from tacit.measure.kkt.residual import Kkt, kkt_cosine, kkt_residual
from tacit.measure.margins import log_loss, normalised_margin, smoothed_margin
from tacit.measure.neurons import Learned, contributions, cosines, learned_directions
from tacit.measure.rank import stable_rank
from tacit.measure.subclasses import Subclasses, discover
from tacit.measure.tails import Tail

__all__ = [
    "Distance",
    "Estimate",
    "Estimated",
    "Kkt",
    "Learned",
    "Subclasses",
    "Tail",
    "algorithm1",
    "alignment_field",
    "contributions",
    "cosines",
    "critical_radius",
    "discover",
    "function_distance",
    "kept_right",
    "kkt_cosine",
    "kkt_residual",
    "learned_directions",
    "log_loss",
    "lower_limit",
    "mean_of",
    "normalised_margin",
    "proportion",
    "rank_correlation",
    "smoothed_margin",
    "stable_rank",
    "upper_limit",
]
