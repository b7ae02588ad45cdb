"""`li2025.thm4.7`: Feature decoupling in sweeps of d, k, n and time."""
