"""Cross-categorization of tables, by subsample annealing."""
