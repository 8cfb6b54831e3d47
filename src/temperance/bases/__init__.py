"""Normalised densities to heat towards: fits to the target, and bridges from them."""
