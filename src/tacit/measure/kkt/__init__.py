"""How near a net is to a KKT point of the max-margin problem."""
