"""What a network computes: exact integer arithmetic in numpy, the definition that hardware is held to."""
