"""`min2024.tails`: The bounds of Proposition 1 and Theorems 1 and 3 where they say something."""
