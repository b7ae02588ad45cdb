"""`min2025.limits`: small init and p > 2 do not commute under noise and unequal counts."""
