"""`li2025.lemma5`: Coefficients of features and of noise, step by step."""
