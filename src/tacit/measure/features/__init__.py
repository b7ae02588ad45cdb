"""What deep features look like, and how sparsely they reconstruct (allenzhu2020, Section 8)."""

from tacit.measure.features.active import active_shares
from tacit.measure.features.dictionaries import ConvDictionary
from tacit.measure.features.images import FeatureImages, at_centre, feature_images
from tacit.measure.features.lasso import (
    Lasso,
    LassoPath,
    lasso,
    lasso_path,
    sparsity_at_error,
    weight_at_error,
)
from tacit.measure.features.pictures import (
    coarse_share,
    rescaled_like,
    total_variation,
    zero_mean,
)
from tacit.measure.features.regression import Regression, regression_error
from tacit.measure.features.spectrum import spectrum, waves

__all__ = [
    "ConvDictionary",
    "FeatureImages",
    "Lasso",
    "LassoPath",
    "Regression",
    "active_shares",
    "at_centre",
    "coarse_share",
    "feature_images",
    "lasso",
    "lasso_path",
    "regression_error",
    "rescaled_like",
    "sparsity_at_error",
    "spectrum",
    "total_variation",
    "waves",
    "weight_at_error",
    "zero_mean",
]
