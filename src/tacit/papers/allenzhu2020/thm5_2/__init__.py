"""`allenzhu2020.thm5.2`: every neuron is one feature and a dense mixture of all others."""
