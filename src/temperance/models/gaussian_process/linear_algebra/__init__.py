"""Factorisations of covariance matrices, called from compiled programs."""
