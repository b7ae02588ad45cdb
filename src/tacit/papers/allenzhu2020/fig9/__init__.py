"""Figure 9: random, clean, robust; what adversarial training removes, and clean training brings back."""
