"""`min2024.prop1`: Both classifiers generalise."""
