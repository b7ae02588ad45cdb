"""`min2024.thm3`: The two radii are critical."""
