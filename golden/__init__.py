"""The arithmetic of networks: exact integer arithmetic in numpy, the definition that hardware is held to."""
