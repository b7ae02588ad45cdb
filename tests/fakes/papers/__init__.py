"""In the place of `tacit.papers`: what the registry takes for tacit's own papers."""
