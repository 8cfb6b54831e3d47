"""Moves of fast and slow variables: ensembles, dragging, random grids, and what a density costs."""
