"""`frei2023.lemma2.1`: The clusters are linearly separable."""
