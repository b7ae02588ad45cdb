"""A scikit-learn classifier with a PolyReLU hidden layer."""

from tacit.estimator.classifier import PolyReLUClassifier

__all__ = ["PolyReLUClassifier"]
