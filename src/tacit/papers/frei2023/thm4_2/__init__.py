"""`frei2023.thm4.2`: One small perturbation flips every trained net."""
