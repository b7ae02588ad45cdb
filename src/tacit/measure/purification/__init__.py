"""What is read off allenzhu2020's nets: angles, mixtures, lottery tickets, density, Lipschitzness."""
