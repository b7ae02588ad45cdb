"""`min2025.learned`: What gradient flow learns as p grows."""
