"""`allenzhu2020.fig2`: how far clean and adversarial training turn the features of each layer."""
