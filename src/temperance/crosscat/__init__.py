"""Mixtures and cross-categorizations of real tables, by subsample annealing."""
