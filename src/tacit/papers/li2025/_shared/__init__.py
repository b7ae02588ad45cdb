"""What several exhibits of li2025 use."""
