"""Descriptions of hardware in plain data: parameters, memories, registers, packets. Needs numpy alone."""
