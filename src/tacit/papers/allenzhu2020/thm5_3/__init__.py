"""`allenzhu2020.thm5.3`: adversarial training removes the mixture and restores robustness."""
