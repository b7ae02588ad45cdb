"""Clean and adversarial training of the symmetric smoothed net (allenzhu2020, Algorithms 1 and 2)."""
