"""Section 8: residual nets on images, clean and robust; what its exhibits share."""
