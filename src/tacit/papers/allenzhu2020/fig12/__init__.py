"""`allenzhu2020.fig12`: sparse reconstruction of images and perturbations (its ResNet half)."""
