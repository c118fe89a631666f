"""What a piece of hardware is, in plain data: parameters, memories, registers, packets. Needs numpy alone."""
