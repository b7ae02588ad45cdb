"""`min2024.table1`: Robust accuracy on MNIST under linf, l2 and l1 attacks."""
