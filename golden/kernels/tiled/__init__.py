"""Binary convolution of packed words in two levels of tiles, as a GPU computes it (spec E)."""
