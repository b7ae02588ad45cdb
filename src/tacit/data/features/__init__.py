"""Frozen features: what a trained net, or any function of an image, makes of a set of images.

images -> transform -> module -> (n, d) features, kept in the user's cache -> centred, of length 1
"""

from tacit.data.features.extract import features_of
from tacit.data.features.extractor import Extractor, Source
from tacit.data.features.named import make_extractor, named_extractor
from tacit.data.features.prepare import Prepared, prepare, unit_rows
from tacit.data.features.transform import ImageTransform

__all__ = [
    "Extractor",
    "ImageTransform",
    "Prepared",
    "Source",
    "features_of",
    "make_extractor",
    "named_extractor",
    "prepare",
    "unit_rows",
]
