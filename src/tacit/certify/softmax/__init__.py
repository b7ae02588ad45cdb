"""Radii of log-odds: the Bayes rule and multi-class nets."""
