"""Cross-categorization: mixtures and tables of mixtures, annealed on growing subsamples of rows."""
