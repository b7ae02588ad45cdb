"""`min2024.table1_strict`: Is it real? Table 1 under attacks that small gradients cannot fool."""
