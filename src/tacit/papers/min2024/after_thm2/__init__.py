"""`min2024.after_thm2`: What the text after Theorem 2 says, along trajectories."""
