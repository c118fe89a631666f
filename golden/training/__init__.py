"""Training of binary networks, the same bytes on every machine."""
