"""`min2025.transition`: Average, centres or a mixture: the phase diagram over p and the size of the init."""
