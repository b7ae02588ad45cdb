"""`allenzhu2020.fig4`: images made of few of AlexNet's robust features."""
