"""`li2025.eps`: The lemmas of Appendices B and C where their eps is small."""
