"""`min2024.lemma1`: While weights are small, neurons follow x^(p)(w)."""
