"""Parallel tempering, its swaps, and the refresh of nested subsamples."""
