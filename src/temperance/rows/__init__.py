"""Rows of data: where they are read from, in which order, and which of them a mini-batch holds."""
