"""`min2025.persists`: Which remedies leave the radius of the class averages."""
