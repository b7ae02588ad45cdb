"""`allenzhu2020.thm5.4`: Adversarial training in linf."""
