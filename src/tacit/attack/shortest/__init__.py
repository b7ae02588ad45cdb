"""The shortest perturbation that breaks a point, without a radius given."""
