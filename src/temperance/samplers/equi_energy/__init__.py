"""Equi-energy samplers on all rows and on mini-batches."""
