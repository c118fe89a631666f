"""What all modules are made of: expressions, registers, streams and memories."""
