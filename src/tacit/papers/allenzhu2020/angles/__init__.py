"""`allenzhu2020.angles`: how far features turn, from the start to clean to purified."""
