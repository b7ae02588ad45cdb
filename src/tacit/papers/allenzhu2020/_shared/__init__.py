"""The finite setting of the sparse coding model, its trainings and its test points, shared by all exhibits."""
