"""`frei2023.remarks`: other noise, unequal norms and sigma above 1."""
