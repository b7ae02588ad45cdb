"""`li2025.fig10`: Embeddings of one class lie together."""
