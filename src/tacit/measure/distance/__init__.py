"""The distance of two nets as functions on the sphere, from below and above."""
