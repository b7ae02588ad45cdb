"""`min2024.alg1`: Algorithm 1 and the true distance."""
