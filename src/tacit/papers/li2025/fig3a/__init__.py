"""`li2025.fig3a`: Robust accuracy with 2 labels and with subclass labels."""
