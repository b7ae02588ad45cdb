"""`li2025.phase`: where the activation does what labels do."""
