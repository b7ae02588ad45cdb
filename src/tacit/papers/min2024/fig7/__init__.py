"""`min2024.fig7`: What turns a neuron: x^(p)(w) in the plane."""
