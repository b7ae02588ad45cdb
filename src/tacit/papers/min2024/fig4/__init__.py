"""`min2024.fig4`: PolyReLU nets on frozen features."""
