"""What several exhibits of frei2023 use."""
