"""`allenzhu2020.fig10`: deep features of clean and of robust nets."""
