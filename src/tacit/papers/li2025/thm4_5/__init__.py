"""`li2025.thm4.5`: Feature averaging in sweeps of d, k, n and time."""
