"""One package per paper: its catalogue of exhibits, and one module of code for each."""
