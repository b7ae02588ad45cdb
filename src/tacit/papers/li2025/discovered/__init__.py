"""`li2025.discovered`: Subclass labels that nobody gave."""
