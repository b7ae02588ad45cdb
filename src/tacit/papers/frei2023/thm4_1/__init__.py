"""`frei2023.thm4.1`: A robust net exists."""
