"""`allenzhu2020.fig13`: features of one deep layer against different attackers."""
