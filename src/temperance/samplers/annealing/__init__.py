"""Annealed importance sampling, its schedules, and sequential Monte Carlo."""
