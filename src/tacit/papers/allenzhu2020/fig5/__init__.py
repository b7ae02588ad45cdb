"""`allenzhu2020.fig5`: neurons become sparsely active during clean training."""
