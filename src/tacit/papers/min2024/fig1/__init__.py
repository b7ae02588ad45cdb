"""`min2024.fig1`: Neurons turn first, then grow: to the averages, or to the centres."""
