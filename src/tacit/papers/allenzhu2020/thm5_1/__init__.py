"""`allenzhu2020.thm5.1`: clean training is accurate, and one direction breaks it."""
