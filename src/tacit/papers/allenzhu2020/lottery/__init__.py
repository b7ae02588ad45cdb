"""`allenzhu2020.lottery`: neurons win the features they lean to at the start; training as a film."""
