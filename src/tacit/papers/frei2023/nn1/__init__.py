"""`frei2023.nn1`: The nearest neighbour is more robust than averaging."""
