"""`min2024.fig2_sgd`: Figure 2 by the released loop and with its own attack."""
