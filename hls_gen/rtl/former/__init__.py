"""Former of an NPU: taps of a window side by side in words."""
