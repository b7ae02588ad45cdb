"""`min2024.fig3` and `min2024.fig6`: one code, parity and the ten digits."""
