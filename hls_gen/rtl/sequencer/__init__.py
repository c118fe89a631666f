"""The sequencer: which word of a map the array reads in which cycle."""
