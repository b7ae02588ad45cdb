"""`allenzhu2020.fig12` and `.fig12_alexnet`: sparse reconstruction of images and perturbations."""
