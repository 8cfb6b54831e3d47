"""Ready-made models: Gaussian processes and Boltzmann machines."""
