"""The surroundings of the device on a board: processing system, block design, handoff file, sources for a bitstream."""
