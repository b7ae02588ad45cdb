"""`allenzhu2020.fig7`: adversarial perturbations before and after adversarial training."""
