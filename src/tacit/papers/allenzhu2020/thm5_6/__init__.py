"""`allenzhu2020.thm5.6`: What learners of low complexity cannot do."""
