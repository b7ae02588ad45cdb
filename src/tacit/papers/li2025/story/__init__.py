"""`li2025.story`: One data set, ten classifiers."""
