"""Figures and reports: what a run looks like to a reader."""
