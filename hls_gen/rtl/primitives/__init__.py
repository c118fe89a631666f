"""Building blocks of all modules: expressions, registers, streams and memories."""
