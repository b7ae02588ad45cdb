"""`li2025.appendixC`: The coefficients of the net with k labels, step by step."""
