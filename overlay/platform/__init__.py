"""What is around the core on a board: block design, handoff file, Vivado sources."""
