"""Ladders of densities from hot to cold, and where their rungs stand."""
