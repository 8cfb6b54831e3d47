"""Moves that read a few rows a step: MINT in three versions, TunaMH, delayed acceptance."""
