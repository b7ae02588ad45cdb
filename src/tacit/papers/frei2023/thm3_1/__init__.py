"""`frei2023.thm3.1`: Trained nets generalise, whatever their width."""
