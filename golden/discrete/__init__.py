"""Training on discrete data: numbers of 1, 2 or 3 bits that index a table, and the arithmetic they allow (spec C)."""
