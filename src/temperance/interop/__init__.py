"""Models of PyMC and NumPyro as problems."""
