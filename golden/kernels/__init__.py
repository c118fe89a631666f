"""Fast ways to compute the same: packed words on this processor, and the convolution that GPUs compute."""
