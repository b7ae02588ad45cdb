"""`li2025.fig2ab` and `li2025.fig5` to `fig9`: cosines of neurons and features."""
