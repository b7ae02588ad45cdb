"""`li2025.fig2cd`: Two labels average frozen features, ten labels decouple them."""
