"""Trained nets, kept by what made them and shared by exhibits; trainings that go on where a kill cut them."""
