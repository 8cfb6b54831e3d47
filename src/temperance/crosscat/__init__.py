"""Cross-categorization: which columns of a table belong together, and which rows alike in them."""
