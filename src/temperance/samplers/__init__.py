"""Samplers: how chains travel between the rungs of a ladder."""
