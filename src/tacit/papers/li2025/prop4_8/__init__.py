"""`li2025.prop4.8`: Subclass labels alone do not make a net robust."""
