"""Markov kernels at one temperature."""
