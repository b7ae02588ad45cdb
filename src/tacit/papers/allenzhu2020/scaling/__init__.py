"""`allenzhu2020.scaling`: Each o(1) as a curve in d."""
