"""What exhibits of several papers use."""
