"""The operations of a network, one a file: parameters, shapes, and exact integer arithmetic."""
