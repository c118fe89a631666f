"""Studies: measurements and comparisons that commands show as tables."""
