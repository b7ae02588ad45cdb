"""`frei2023.thm2.1`: The flow ends at a KKT point, and here it is."""
