"""`min2024.overtraining`: robust accuracy and margins against epochs, for each p."""
