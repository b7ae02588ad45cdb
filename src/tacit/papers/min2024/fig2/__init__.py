"""`min2024.fig2` and `min2024.fig5`: one code, two numbers of subclasses."""
