"""Gaussian-process regression: kernels, priors, the likelihood and its gradient, prediction."""
