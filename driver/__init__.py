"""Runs on the board: sends programs and images to the accelerator, reads results. Needs numpy; pynq for the device."""
