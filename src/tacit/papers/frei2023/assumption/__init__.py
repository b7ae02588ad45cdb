"""`frei2023.assumption`: Who satisfies Assumption 2.2."""
