"""Real images: data sets by name, folders of images by class, and features in numpy files."""

from tacit.data.images.catalogue import DATASETS, Dataset, find_dataset
from tacit.data.images.fetch import fetch
from tacit.data.images.folder import ImageFolder
from tacit.data.images.images import Images
from tacit.data.images.load import load_images
from tacit.data.images.npz import Features, load_features
from tacit.data.images.places import present

__all__ = [
    "DATASETS",
    "Dataset",
    "Features",
    "ImageFolder",
    "Images",
    "fetch",
    "find_dataset",
    "load_features",
    "load_images",
    "present",
]
