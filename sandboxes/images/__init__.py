"""The image of the docker backend."""
