"""`min2025.robust`: F^(p) against the Bayes rule and the best possible radius."""
