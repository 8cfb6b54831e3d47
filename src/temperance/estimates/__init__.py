"""Estimates from draws: log evidence, diagnostics, weighted expectations. NumPy alone."""
