"""`allenzhu2020.transfer`: what breaks one net breaks another."""
