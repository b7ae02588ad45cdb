"""`min2025.alpha0`: Two positive clusters without noise: where each neuron turns."""
